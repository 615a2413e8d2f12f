"""Does an installed penstock work? Run by the Python of an environment that has it, in any folder but a checkout.

`tests/wheel/ends.py` does so. Standard error is looked at, too: nothing but penstock's own words may stand there.
"""

from __future__ import annotations

import csv
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
APP = """
CREATE STREAM flows (ts TIMESTAMP, src INET, bytes INT) FROM 'csv:flows.csv' WATERMARK ts DELAY '1 second';
CREATE QUERY talkers INTO 'csv:${out}' AS
  SELECT src, count(*) AS n, sum(bytes) AS bytes FROM flows [RANGE '1 minute'] GROUP BY src;
"""
QUERY = "SELECT src, count(*) AS n, sum(bytes) AS bytes FROM 'flows.csv' GROUP BY src ORDER BY src"
RECORDS = [(f"2026-01-01T00:00:{second:02d}Z", f"10.0.0.{second % 3}", 100 + second) for second in range(10)]
EXPECTED = [["10.0.0.0", "4", "418"], ["10.0.0.1", "3", "312"], ["10.0.0.2", "3", "315"]]
NOTEBOOK = """
from pyspark.sql import SparkSession
import penstock as ps

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
app = ps.App(spark=spark)
app.stream("flows", "csv:flows.csv", types={"ts": "TIMESTAMP", "src": "INET", "bytes": "INT"})
app.query("talkers", "SELECT src, count(*) AS n, sum(bytes) AS bytes FROM flows [RANGE '1 minute'] GROUP BY src")
run = app.start(output="notebook")
run.await_end()
rows = run.results("talkers").orderBy("src").collect()
print([[row.src, str(row.n), str(row.bytes)] for row in rows])
assert spark.range(3).count() == 3, "the session of the user must go on"
spark.stop()
"""
NOISE = re.compile(r"log4j|WARN|ERROR|Warning|Traceback|Exception|^\s+at |NativeCodeLoader|SLF4J", re.MULTILINE)


def say(command: list[str], silent: bool = True) -> str:
    """What a command prints; `silent`: nothing goes to standard error."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    told = f"$ {' '.join(command)}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
    require(done.returncode == 0, told)
    require(not (silent and done.stderr), told)
    return done.stdout if silent else done.stderr


def require(holds: bool, told: str) -> None:
    if not holds:
        sys.exit(f"error: an installed penstock fails\n{told}")


def main() -> None:
    os.environ.pop("PYTHONPATH", None)
    # As `activate` does: a session of the user's takes the first python3 on the path for its workers.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    version = importlib.metadata.version("penstock")
    with tempfile.TemporaryDirectory(prefix="penstock-smoke-") as folder:
        os.chdir(folder)
        Path("app.sql").write_text(APP)
        with open("flows.csv", "w", newline="") as file:
            csv.writer(file).writerows([("ts", "src", "bytes"), *RECORDS])
        Path("notebook.py").write_text(NOTEBOOK)
        require(say([PENSTOCK, "--version"]) == f"penstock {version}\n", "--version")
        require(say([sys.executable, "-m", "penstock", "--version"]) == f"penstock {version}\n", "-m penstock")
        require("1 query over stream 'flows'" in say([PENSTOCK, "check", "app.sql", "--set", "out=o"]), "check")
        asked = say([PENSTOCK, "query", QUERY, "--format", "csv", "--quiet"])
        require([row[:3] for row in csv.reader(asked.splitlines())][1:] == EXPECTED, f"query: {asked}")
        check_run("process", "process")
        check_run("spark", "local[2]")
        require(repr(EXPECTED) in say_of_session(), "the notebook's rows")


def check_run(output: str, master: str) -> None:
    """Ten records through the command line: the summary, the rows, and a quiet standard error."""
    run = [PENSTOCK, "run", "app.sql", "--set", f"out={output}", "--master", master]
    summary = json.loads(say([*run, "--quiet", "--json", "--checkpoint", f"{output}-ckpt"]))
    require(summary["queries"]["talkers"]["rows"] == len(EXPECTED), f"{master}: {summary}")
    rows = [row[:3] for path in Path(output).glob("*.csv") for row in list(csv.reader(path.open()))[1:]]
    require(sorted(rows) == EXPECTED, f"{master}: {rows}")
    # Once more, which has nothing to do: what is shown to people.
    shown = say([*run, "--checkpoint", f"{output}-ckpt"], silent=False)
    require("closing account" in shown and not NOISE.search(shown), shown)


def say_of_session() -> str:
    """A session that the user made says what Spark says; only its answer is ours."""
    done = subprocess.run([sys.executable, "notebook.py"], capture_output=True, text=True, timeout=600)
    require(done.returncode == 0 and "Traceback" not in done.stderr, f"{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
    print("installed, and it works")
