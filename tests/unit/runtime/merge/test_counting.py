"""What merge tasks count of joins, against the records themselves: keys, records, groups and combinations of every plan
at an instant, whatever the sides are stored as."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.runtime.batch.report import BatchReport
from penstock.runtime.merge import counting
from penstock.runtime.merge.join.living import folding
from penstock.state.manifest import Manifest
from penstock.state.protocol import HeldAt, JoinCounts
from penstock.testing.asserts import assert_same_rows

SECONDS, ROWS = 60, 900
WINDOWS = {"tumbling": (10, 10), "sliding": (20, 5)}  # range and slide in seconds
Record = tuple[int, str | None, int]  # second, key, group


def write(folder: Path, names: str, rng: random.Random) -> dict[str, list[Record]]:
    """Streams of records in order of time; some keys are NULL, some only on one side."""
    found = {}
    for number, name in enumerate(names):
        keys = [None, *(f"k{n}" for n in range(number, number + 9))]
        seconds = sorted(rng.randrange(SECONDS) for _ in range(ROWS))
        records = [(second, rng.choice(keys), rng.randrange(1 + 5 * number)) for second in seconds]
        columns = {
            "ts": pa.array([1_000_000 * second for second, _, _ in records], pa.timestamp("us")),
            "k": pa.array([key for _, key, _ in records], pa.string()),
            "g": pa.array([group for _, _, group in records], pa.int32()),
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=150)
        found[name] = records
    return found


def app(folder: Path, names: str, window: str) -> str:
    """A join of all streams by key, grouped by a column of each."""
    text = [f"CREATE STREAM {n} FROM 'parquet:{folder / n}.parquet' WATERMARK ts DELAY '0 s';" for n in names]
    length, slide = WINDOWS[window]
    sides = ", ".join(f"{n} {n.upper()} [RANGE '{length} seconds' SLIDE '{slide} seconds']" for n in names)
    on = " AND ".join(f"A.k = {n.upper()}.k" for n in names[1:])
    keys = ", ".join(f"{n.upper()}.g" for n in names)
    listed = ", ".join(f"{n.upper()}.g AS g{n}" for n in names)
    text.append(
        f"CREATE QUERY j AS SELECT {listed}, count(*) AS n, max(A.g) AS m FROM {sides} WHERE {on} GROUP BY {keys};"
    )
    return "\n".join(text)


def counts(folder: Path, text: str, joins: str, **options: Any) -> list[JoinCounts]:
    found: list[JoinCounts] = []

    def listen(report: BatchReport, manifest: Manifest) -> None:
        found.extend(report.joins)

    settings = {"parallelism": 1, "batch_rows": 600, "joins": joins, "plan": "none", "replan": "off", **options}
    run = (
        ps.App(master="process")
        .sql(text)
        .start(str(folder / f"checkpoint{joins}"), output=str(folder / f"out{joins}"), listener=listen, **settings)
    )
    run.await_end()
    return found


def expected(streams: dict[str, list[Record]], window: str) -> list[Any]:
    """At every instant: keys in common, records and groups of each side, combinations by the bits of plans."""
    length, slide = WINDOWS[window]
    found = []
    for end in range(slide, SECONDS + length, slide):
        sides = [[(k, g) for t, k, g in of if end - length <= t < end and k is not None] for of in streams.values()]
        if all(sides):
            held = [Counter(key for key, _ in side) for side in sides]
            groups = [Counter(key for key, _ in set(side)) for side in sides]
            common = set.intersection(*(set(each) for each in held))
            pairs = {
                "".join(map(str, bits)): sum(
                    prod((groups if early else held)[n][key] for n, early in enumerate(bits)) for key in common
                )
                for bits in product((0, 1), repeat=len(sides))
            }
            figures = tuple((len(side), len(set(side))) for side in sides)
            found.append((len(common), figures, pairs))
    return found


def shown(held: HeldAt) -> Any:
    return round(held.keys), tuple((round(s.records), round(s.groups)) for s in held.sides), dict(held.pairs)


@pytest.mark.parametrize(("names", "window"), [("ab", "sliding"), ("ab", "tumbling"), ("abc", "sliding")])
def test_counts_are_those_of_the_records(names: str, window: str, tmp_path: Path) -> None:
    seed = 4
    streams = write(tmp_path, names, random.Random(seed))
    known = expected(streams, window)
    told = {}
    for joins in ("early", "late", "10" if names == "ab" else "011"):
        found = counts(tmp_path, app(tmp_path, names, window), joins)
        held = [one.held for one in found if one.held is not None]
        assert held, found
        for one in held:
            assert shown(one) in known, f"seed {seed}, {joins}: {shown(one)}"
        told[joins] = [shown(one) for one in held]
        assert {one.living for one in found} == {names == "ab"}
        assert sum(one.instants for one in found) >= len(known)
    assert len({str(each) for each in told.values()}) == 1, "plans differ in what they count"


def test_stored_rows_are_counted_where_they_are_joined_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, "ab", random.Random(5))
    late, early = (
        next(one.held for one in counts(tmp_path, app(tmp_path, "ab", "sliding"), joins) if one.held is not None)
        for joins in ("late", "early")
    )
    for one, other in zip(late.sides, early.sides, strict=True):
        assert round(one.rows) == round(one.records)
        assert one.groups <= other.rows < one.rows


def test_of_many_rows_some_keys_stand_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are about those of all keys, which have about as many records."""
    streams = write(tmp_path, "ab", random.Random(6))
    known = expected(streams, "sliding")
    monkeypatch.setattr(counting, "MOST", 200)
    held = [one.held for one in counts(tmp_path, app(tmp_path, "ab", "sliding"), "late") if one.held is not None]
    assert held
    assert any(shown(one) not in known for one in held)
    for one in held:
        near = min(known, key=lambda each: abs(each[1][1][0] - one.sides[1].records))
        assert one.pairs["00"] == pytest.approx(near[2]["00"], rel=0.8)


def test_instants_with_too_many_groups_are_joined_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to one instant at a time: the answers are the same, and the work is that of all."""
    write(tmp_path, "ab", random.Random(7))
    text = app(tmp_path, "ab", "sliding")
    whole = counts(tmp_path, text, "11")
    monkeypatch.setattr(folding, "MOST_PLACES", 40)
    monkeypatch.setattr(folding, "FEW_PLACES", 40)
    monkeypatch.setattr(folding, "MOST_CELLS", 4)
    halves = counts(tmp_path, text, "10")
    assert {one.living for one in halves} == {True}
    assert [(one.instants, one.made) for one in halves] == [(one.instants, one.made) for one in whole]
    rows = [
        pa.concat_tables(pq.read_table(path) for path in (tmp_path / f"out{joins}" / "j").glob("*.parquet"))
        for joins in ("11", "10")
    ]
    assert_same_rows(rows[1], rows[0], "in halves")
