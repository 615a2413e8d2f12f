"""The Python API in one page: a stream, three queries, one run.

    .venv/bin/python examples/quickstart.py

The stream is generated while it is read; `parquet:FILE` in its place reads a file.
"""

from __future__ import annotations

import tempfile

import penstock as ps


def main() -> None:
    app = ps.App()
    app.stream("flows", "generate:bursty", delay="2 seconds", options={"rows": 300_000, "rate": 1000})
    app.query(
        "talkers",
        "SELECT src, count(*) AS records, sum(bytes) AS bytes FROM flows [RANGE '1 minute'] "
        "GROUP BY src HAVING count(*) >= 50",
    )
    app.query("nets", "SELECT dst/16 AS net, sum(bytes) AS bytes FROM flows [RANGE '5 minutes'] GROUP BY dst/16")
    app.query("protocols", "SELECT proto, count(*) AS records FROM flows [RANGE '1 minute'] GROUP BY proto")
    print(app.explain())

    with tempfile.TemporaryDirectory() as folder:
        run = app.start(checkpoint=f"{folder}/checkpoint", output=f"{folder}/out")  # returns at once
        run.await_end()

        talkers = run.results("talkers")  # a Spark DataFrame
        talkers.orderBy("window_start", talkers.bytes.desc()).show(10, truncate=False)

        summary = run.summary()
        account = summary["accounting"]
        print(f"{account['input']:,} records in, {account['exact']:,} of them exact, {account['late']:,} late")
        print({name: f"{query['windows']} windows" for name, query in summary["queries"].items()})
    app.close()


if __name__ == "__main__":
    main()
