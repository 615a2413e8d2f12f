"""Joins by prefixes of addresses, of both versions, beside plain Python."""

from __future__ import annotations

import ipaddress
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps

SECOND = 1_000_000
APP = """
CREATE STREAM A (ts TIMESTAMP, ip INET) FROM 'parquet:{place}/A.parquet' WATERMARK ts DELAY '1 second';
CREATE STREAM B (ts TIMESTAMP, ip INET) FROM 'parquet:{place}/B.parquet' WATERMARK ts DELAY '1 second';
CREATE QUERY fine AS SELECT a.ip/24 AS net, a.ip AS one, count(*) AS n
  FROM A a [RANGE '20 seconds' SLIDE '10 seconds'], B b [RANGE '10 seconds'] WHERE a.ip/24 = b.ip/24
  GROUP BY a.ip/24, a.ip;
CREATE QUERY coarse AS SELECT b.ip/16 AS net, count(*) AS n
  FROM A a [RANGE '10 seconds'], B b [RANGE '10 seconds'] WHERE a.ip/24 = b.ip/24 GROUP BY b.ip/16;
"""


def address(rng: np.random.Generator) -> str | None:
    if rng.random() < 0.05:
        return None
    if rng.random() < 0.3:
        return str(ipaddress.IPv6Address((0x20010DB8 << 96) + (int(rng.integers(4)) << 64) + int(rng.integers(50))))
    return f"10.0.{rng.integers(5)}.{rng.integers(40)}"


def cut(text: str, length: int) -> str:
    return str(ipaddress.ip_network(f"{text}/{length}", strict=False))


def test_prefixes_of_both_versions(tmp_path: Path) -> None:
    rng, streams = np.random.default_rng(4), dict[str, list[tuple[int, str]]]()
    for name, rows in (("A", 300), ("B", 250)):
        times, found = np.sort(rng.integers(0, 60 * SECOND, rows)), [address(rng) for _ in range(rows)]
        table = pa.table({"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "ip": found})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        streams[name] = [(time, one) for time, one in zip(times.tolist(), found, strict=True) if one is not None]
    run = ps.App(master="process").sql(APP.format(place=tmp_path)).start(
        str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), parallelism=1, batch_rows=80
    )  # fmt: skip
    run.await_end()
    fine, coarse = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for t in range(10 * SECOND, 90 * SECOND, 10 * SECOND):
        left = [(time, one) for time, one in streams["A"] if t - 20 * SECOND <= time < t]
        right = [one for time, one in streams["B"] if t - 10 * SECOND <= time < t]
        for time, one in left:
            for other in right:
                if cut(one, 24) == cut(other, 24):
                    fine[cut(one, 24), one, t] += 1
                    coarse[cut(other, 16), t] += time >= t - 10 * SECOND
    ends = lambda row: int(row["window_end"].timestamp() * SECOND)  # noqa: E731
    assert {(r["net"], r["one"], ends(r)): r["n"] for r in run.arrow("fine").to_pylist()} == dict(fine)
    assert {(r["net"], ends(r)): r["n"] for r in run.arrow("coarse").to_pylist()} == dict(+coarse)


@pytest.mark.parametrize("memory", [20_000, 100_000_000])
def test_an_address_and_its_prefix_in_one_key(memory: int, tmp_path: Path) -> None:
    """One column twice in the key of A; in B they are two. With little memory, in passes by the key."""
    rng, rows = np.random.default_rng(5), 1_500
    times = pa.array(np.sort(rng.integers(0, 10 * SECOND, rows)), pa.timestamp("us", tz="UTC"))
    columns = {name: [address(rng) for _ in range(rows)] for name in ("src", "dst", "host")}
    pq.write_table(pa.table({"ts": times, "src": columns["src"]}), tmp_path / "A.parquet")
    pq.write_table(pa.table({"ts": times, "dst": columns["dst"], "host": columns["host"]}), tmp_path / "B.parquet")
    text = f"""
        CREATE STREAM A (ts TIMESTAMP, src INET) FROM 'parquet:{tmp_path}/A.parquet';
        CREATE STREAM B (ts TIMESTAMP, dst INET, host INET) FROM 'parquet:{tmp_path}/B.parquet';
        CREATE QUERY q AS SELECT count(*) AS n FROM A [RANGE '10 seconds'], B [RANGE '10 seconds']
          WHERE A.src/24 = B.dst/24 AND A.src = B.host;
        CREATE QUERY without AS SELECT count(*) AS n FROM A [RANGE '10 seconds']
          WHERE NOT EXISTS (SELECT 1 FROM B [RANGE '10 seconds'] WHERE B.dst/24 = A.src/24 AND B.host = A.src);
        """
    run = ps.App(master="process").sql(text).start(
        str(tmp_path / "checkpoint"), output=str(tmp_path / "out"), task_memory=memory
    )  # fmt: skip
    run.await_end()
    pairs = zip(columns["dst"], columns["host"], strict=True)
    theirs = Counter((cut(dst, 24), host) for dst, host in pairs if dst is not None and host is not None)
    found = [0 if src is None else theirs[cut(src, 24), src] for src in columns["src"]]
    assert sum(found) > 0
    assert run.arrow("q").column("n").to_pylist() == [sum(found)]
    assert run.arrow("without").column("n").to_pylist() == [found.count(0)]
