"""Synthetic sources: the same records however they are read, shapes as promised, options checked."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.errors import RunError, SourceError
from penstock.logical.types import INET, TIMESTAMP
from penstock.sources.base import Source, Split, fields
from penstock.sources.generate.source import FLOW_ATTRIBUTES, open_generate
from penstock.sources.generate.synthetic import BLOCK
from penstock.sources.parquet.source import open_parquet
from penstock.sources.parquet.write import write_parquet

KINDS = ("uniform", "zipf", "clustered", "bursty")


def table(source: Source, start: int = 0, stop: int | None = None, batch_rows: int = 1 << 20) -> pa.Table:
    end = source.rows() if stop is None else stop
    names = source.schema().names
    return pa.Table.from_batches(source.read(Split(start, end), names, batch_rows), source.schema())


@pytest.mark.parametrize("kind", KINDS)
def test_any_cut_gives_the_same_records(kind: str) -> None:
    source = open_generate(kind, {"rows": "200000"})
    whole = table(source)
    assert whole.num_rows == 200_000
    rng = random.Random(kind)
    position = 0
    while position < source.rows():
        end = source.cut(position, rng.randint(1, 120_000))
        assert position < end <= source.rows()
        for split in source.splits(position, end, rng.randint(1, 4)):
            again = pickle.loads(pickle.dumps(source))
            part = table(again, split.start, split.stop, rng.choice([999, 50_000, 10**6]))
            assert part.equals(whole.slice(split.start, split.stop - split.start))
        position = end


@pytest.mark.parametrize("kind", KINDS)
def test_times_never_go_back(kind: str) -> None:
    times = table(open_generate(kind, {"rows": "500000", "rate": "777.5"}))["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 1767225600_000_000
    assert (times[-1] - times[0]) / 1e6 == pytest.approx(500_000 / 777.5, rel=0.05)


def test_seed_and_prefix() -> None:
    short, long = open_generate("flows", {"rows": "1000"}), open_generate("clustered", {"rows": "70000"})
    assert table(short).equals(table(long, 0, 1000))
    assert not table(short).equals(table(open_generate("flows", {"rows": "1000", "seed": "8"})))
    prints = [open_generate(*k).fingerprint() for k in (("flows", {}), ("flows", {"seed": "8"}), ("zipf", {}))]
    assert len(set(prints)) == 3
    assert open_generate("flows", {}).fingerprint() == open_generate("clustered", {"rows": "1000000"}).fingerprint()


def test_no_columns_still_counts_rows() -> None:
    source = open_generate("uniform", {"rows": "100000"})
    assert sum(batch.num_rows for batch in source.read(Split(5, 99_999), [], 1000)) == 99_994


def test_cut_and_splits_prefer_blocks() -> None:
    source = open_generate("uniform", {"rows": str(100 * BLOCK)})
    assert source.cut(0, 100_000) == BLOCK
    assert source.cut(0, 1000) == 1000
    assert [s.stop / BLOCK for s in source.splits(0, 100 * BLOCK, 3)] == [33, 67, 100]


def test_uniform_attributes() -> None:
    made = table(open_generate("uniform", {"rows": "200000", "attributes": "3", "cardinality": "5, 50,500"}))
    assert made.column_names == ["ts", "a", "b", "c", "value"]
    for name, count in (("a", 5), ("b", 50), ("c", 500)):
        seen = np.bincount(made[name].to_numpy())
        assert len(seen) == count
        assert seen.std() < 3 * np.sqrt(200_000 / count)


def test_groups_limit_the_tuples() -> None:
    options = {"rows": "200000", "groups": "2837", "cardinality": "500"}
    for kind in ("uniform", "zipf"):
        made = table(open_generate(kind, options)).select(["a", "b", "c", "d"])
        assert 2500 < made.group_by(["a", "b", "c", "d"]).aggregate([]).num_rows <= 2837


def test_zipf_exponent() -> None:
    made = table(open_generate("zipf", {"rows": "500000", "cardinality": "1000", "exponent": "1.2"}))
    counts = np.sort(np.bincount(made["a"].to_numpy()))[::-1]
    slope = np.polyfit(np.log(np.arange(1, 101)), np.log(counts[:100]), 1)[0]
    assert slope == pytest.approx(-1.2, abs=0.05)


def test_flow_schema() -> None:
    kinds = {field.name: field.type for field in fields(open_generate("clustered", {}).schema())}
    assert len(FLOW_ATTRIBUTES) == 13
    assert set(FLOW_ATTRIBUTES) < set(kinds)
    assert kinds["src"] == kinds["dst"] == INET
    assert kinds["ts"] == TIMESTAMP


@pytest.mark.parametrize("length", [1, 5, 20])
def test_flow_lengths(length: int) -> None:
    made = table(open_generate("clustered", {"rows": str(8 * BLOCK), "flow_length": str(length)}))
    keys = ["src", "dst", "sport", "dport", "proto"]
    tcp = made.filter(pc.equal(made["proto"], 6))
    flows = tcp.group_by(keys).aggregate([([], "count_all")])
    assert tcp.num_rows / flows.num_rows == pytest.approx(length, rel=0.3)
    if length == 20:
        assert pc.max(flows["count_all"]).as_py() > 1000  # the tail


def test_flows_come_in_trains() -> None:
    made = table(open_generate("clustered", {"rows": str(BLOCK)}))
    flow = made["src"].to_numpy().astype(np.int64) * 65536 + made["sport"].to_numpy()
    near = np.mean([(flow[i:] == flow[:-i]).mean() for i in range(1, 6)])
    shuffled = np.random.default_rng(0).permutation(flow)
    far = np.mean([(shuffled[i:] == shuffled[:-i]).mean() for i in range(1, 6)])
    assert near > 10 * far


def test_attributes_depend_on_each_other() -> None:
    made = table(open_generate("clustered", {"rows": "300000"}))
    made = made.append_column("net", pc.shift_right(made["src"], pa.scalar(16, pa.uint32())))
    for cause, effect in (("net", "src_as"), ("src", "ttl"), ("src_as", "in_if"), ("dst_as", "out_if")):
        assert made.group_by([cause, effect]).aggregate([]).num_rows == pc.count_distinct(made[cause]).as_py()
    web = made.filter(pc.equal(made["dport"], 80))
    assert pc.mean(pc.equal(web["proto"], 6)).as_py() > 0.9
    octets = pc.shift_right(made["src"], pa.scalar(24, pa.uint32())).to_numpy()
    assert octets.min() >= 1
    assert octets.max() < 224
    assert not np.isin(octets, [10, 127]).any()
    other = made.filter(pc.not_equal(made["proto"], 6))
    assert pc.max(other["flags"]).as_py() == 0
    assert pc.min(made["bytes"]).as_py() >= 40


def test_group_counts_are_realistic() -> None:
    made = table(open_generate("clustered", {"rows": "2000000"})).select(["src", "dst"])
    assert 40_000 < pc.count_distinct(made["src"]).as_py() < 70_000
    assert 70_000 < made.group_by(["src", "dst"]).aggregate([]).num_rows < 110_000


def test_bursts() -> None:
    made = table(open_generate("bursty", {"rows": "2000000"}))
    seconds = made["ts"].cast(pa.int64()).to_numpy() // 1_000_000
    counts = np.bincount(seconds - seconds[0])[1:-1]
    usual = np.median(counts)
    bursts = counts[counts > 3 * usual]
    assert 3 <= len(bursts) <= 20
    assert 5 <= bursts.max() / usual <= 10.5


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "poisson",
            {},
            "unknown kind of synthetic stream 'poisson'\n.*bids, bursty, clustered, flows, persons, uniform, zipf",
        ),
        ("zipf", {"rowz": "1"}, "unknown option 'rowz' of generate:zipf\n.*attributes, cardinality, exponent"),
        ("uniform", {"exponent": "1"}, "unknown option 'exponent'"),
        ("zipf", {"rows": "many"}, "option 'rows' of generate:zipf is 'many'\n.*a whole number from 0"),
        ("zipf", {"rows": "-1"}, "a whole number from 0"),
        ("zipf", {"rows": "1.5e0"}, "a whole number from 0"),
        ("zipf", {"rows": "1e999"}, "a whole number from 0"),
        ("zipf", {"rate": "0"}, "a number from 0.001"),
        ("zipf", {"rate": "nan"}, "a number from 0.001"),
        ("zipf", {"start": "yesterday"}, "an ISO time such as"),
        ("zipf", {"cardinality": "1,2"}, "has 2 numbers for 4 attributes"),
        ("clustered", {"flow_length": "0"}, "a number from 1 to"),
    ],
)
def test_bad_options(kind: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        open_generate(kind, options)


def test_start_and_zero_rows() -> None:
    source = open_generate("UNIFORM", {"rows": "0", "start": "2026-03-01 12:00"})
    assert table(source).num_rows == 0
    assert source.cut(0, 10) == 0
    made = table(open_generate("uniform", {"rows": "1", "start": "2026-03-01T12:00:00+02:00"}))
    assert made["ts"][0].as_py().isoformat().startswith("2026-03-01T10:00:00")


def test_write_parquet(tmp_path: Path) -> None:
    source = open_generate("clustered", {"rows": "150000"})
    seen: list[int] = []
    path = tmp_path / "deep" / "flows.parquet"
    write_parquet(source, path, row_group_rows=70_000, progress=seen.append)
    assert seen == [70_000, 140_000, 150_000]
    assert pq.read_metadata(path).num_row_groups == 3
    again = open_parquet(str(path), {})
    assert again.schema().equals(source.schema(), check_metadata=True)
    assert table(again).equals(table(source))
    assert [p.name for p in path.parent.iterdir()] == ["flows.parquet"]


def test_write_parquet_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        write_parquet(open_generate("uniform", {"rows": "10"}), tmp_path / "file" / "a.parquet")

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(open_generate("uniform", {"rows": "10"}), tmp_path / "a.parquet", progress=stop)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
