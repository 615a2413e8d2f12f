"""Surveys: counts against brute force, and how far extrapolated groups and flow lengths are from the truth."""

from __future__ import annotations

import ipaddress
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.logical.expressions import Column
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import BIGINT
from penstock.relations.component import component_of as named
from penstock.relations.layout import lay_out
from penstock.runtime.profile.survey import CountedGroups, Survey
from penstock.runtime.tables.chunk import pack_words
from penstock.runtime.task import sampling
from penstock.runtime.task.task import sampled
from penstock.sharing.graph.grain import union
from penstock.sharing.graph.lattice import Lattice, lattice
from penstock.sharing.plan import unshared_plan
from penstock.sources.registry import open_source
from support.alone import alone, names

SECOND = 1_000_000
Row = dict[str, Any]
KEYS: dict[str, Callable[[Row], Any]] = {
    "a": lambda row: row["a"],
    "name": lambda row: row["name"],
    "a + b": lambda row: None if row["a"] is None else row["a"] + row["b"],
    "src": lambda row: row["src"],
    "src/24": lambda row: network(row["src"], 24),
    "src/48": lambda row: network(row["src"], 48),
}
WINDOWS = {  # SQL, slide, length
    "[RANGE '10 seconds' SLIDE '10 seconds']": (10, 10),
    "[RANGE '20 seconds' SLIDE '20 seconds']": (20, 20),
    "[RANGE '60 seconds' SLIDE '20 seconds']": (20, 60),
    "[RANGE '25 seconds' SLIDE '10 seconds']": (10, 25),
    "[RANGE '4 seconds' SLIDE '10 seconds']": (10, 4),
}
WHERES: dict[str, Callable[[Row], bool]] = {
    "": lambda row: True,
    "WHERE b > 2": lambda row: row["b"] > 2,
    "WHERE a = 3": lambda row: row["a"] == 3,
    "WHERE name IS NULL": lambda row: row["name"] is None,
}


def network(address: str | None, length: int) -> Any:
    if address is None:
        return None
    whole = ipaddress.ip_address(address)
    return ipaddress.ip_network((whole, min(length, whole.max_prefixlen)), strict=False)


@dataclass(frozen=True)
class Asked:
    """One query, as text and as a function."""

    keys: tuple[str, ...]
    window: str
    where: str

    def text(self, name: str) -> str:
        keys = ", ".join(self.keys)
        listed = f"{keys}, " if keys else ""
        grouped = f" GROUP BY {keys}" if keys else ""
        return f"CREATE QUERY {name} AS SELECT {listed}count(*) AS n FROM s {self.window} {self.where}{grouped};"

    def takes(self, row: Row) -> bool:
        slide, length = WINDOWS[self.window]
        return WHERES[self.where](row) and (length >= slide or row["ts"] // SECOND % slide < length)

    def key(self, row: Row) -> tuple[Any, ...]:
        slide, length = WINDOWS[self.window]
        pane = row["ts"] // SECOND // slide, row["ts"] // SECOND % slide >= length % slide
        return pane, self.takes(row), *(KEYS[key](row) for key in self.keys)


def stream(rng: random.Random, rows: int) -> list[Row]:
    addresses = [
        None,
        *(f"10.{i % 3}.{i % 2}.{i}" for i in range(9)),
        *(f"2001:db8:{i % 3:x}:{i:x}::1" for i in range(6)),
    ]
    times = sorted(rng.randrange(0, 90 * SECOND) for _ in range(rows))
    return [
        {
            "ts": ts, "a": rng.choice([None, *range(5)]), "b": rng.randrange(5),
            "name": rng.choice([None, "", "x", "yy"]), "src": rng.choice(addresses),
        }
        for ts in times
    ]  # fmt: skip


def surveyed(rows: list[Row], asked: list[Asked], folder: Path) -> tuple[Survey, Lattice]:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    table = pa.table(
        {**columns, "ts": pa.array(columns["ts"], pa.timestamp("us")), "a": pa.array(columns["a"], pa.int32())}
    )
    pq.write_table(table, folder / "in.parquet")
    text = f"CREATE STREAM s (ts TIMESTAMP, a INT, b BIGINT, name STRING, src INET) FROM 'parquet:{folder}/in.parquet';"
    app = resolve_app("\n".join([text, *(q.text(f"q{i}") for i, q in enumerate(asked))]), "app.sql", None)
    plan = replace(unshared_plan(app, "s"), stored=alone(app, "s"))
    found = sampled(plan, open_source(app.streams[0].source, {}), 1 << 20)
    assert found is not None
    net, of = lattice(plan.relations), names(app, "s")
    return found, replace(net, grains={query: net.grains[of[query]] for query in of})


def brute(rows: list[Row], asked: list[Asked]) -> tuple[int, float, float, int]:
    """Tuples, and groups in any quarter or half of 16 blocks and in all of them, of the relation that feeds all these
    queries."""
    chosen = [row for row in rows if any(q.takes(row) for q in asked)]
    keys = [tuple(q.key(row) for q in asked) for row in chosen]
    n = len(keys)
    blocks: dict[Any, set[int]] = {}
    for i, key in enumerate(keys):
        blocks.setdefault(key, set()).add(16 * i // n)
    quarter, half = (
        sum(1 - math.comb(16 - len(those), some) / math.comb(16, some) for those in blocks.values()) for some in (4, 8)
    )
    return n, pytest.approx(quarter), pytest.approx(half), len(blocks)


@pytest.mark.parametrize("seed", range(6))
def test_groups_are_counted_exactly(seed: int, tmp_path: Path) -> None:
    """Of queries and of any two or three together: NULLs, strings, prefixes, IPv6, expressions, panes, choices."""
    rng = random.Random(seed)
    rows = stream(rng, rng.choice([5, 300, 1000]))
    asked = [
        Asked(tuple(rng.sample(list(KEYS), rng.randint(0, 3))), rng.choice(list(WINDOWS)), rng.choice(list(WHERES)))
        for _ in range(6)
    ]
    survey, net = surveyed(rows, asked, tmp_path)
    assert survey.tuples == len(rows)
    for size in (1, 2, 3):
        for numbers in itertools.combinations(range(len(asked)), size):
            grain = union(*(net.grains[f"q{i}"] for i in numbers))
            found = survey.counted(grain, net)
            expected = brute(rows, [asked[i] for i in numbers])
            story = f"seed {seed}: {[asked[i] for i in numbers]}"
            assert (found.tuples, found.quarter, found.half, found.groups) == expected, story


def test_more_tuples_than_a_sample_has(tmp_path: Path) -> None:
    rows = [{"ts": i, "a": i % 7, "b": i, "name": "x", "src": None} for i in range(sampling.RECORDS + 10)]
    survey, net = surveyed(rows, [Asked(("a",), "[RANGE '10 seconds' SLIDE '10 seconds']", "")], tmp_path)
    assert survey.tuples == sampling.RECORDS
    assert survey.counted(net.grains["q0"], net).groups == 7


def numbers_of(keys: np.ndarray) -> Survey:
    """A survey of keys that are one number."""
    from penstock.relations.layout import Layout, Place

    return Survey(
        Layout({named("value:k"): Place(0, 0, 64, 0), named("null:k"): Place(0, 0, 0, 0)}, 1),
        keys[: sampling.RECORDS].astype(np.uint64).reshape(1, -1),
    )


GRAIN = frozenset({("value:k", 129)})
NET = Lattice({"q": GRAIN}, {"value:k": Column("k", BIGINT)}, {})


def counted(keys: np.ndarray) -> CountedGroups:
    return numbers_of(keys).counted(GRAIN, NET)


def keys_of(kind: str, groups: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """`clustered`: flows of 30 tuples, some twenty of them at a time."""
    skew = float(kind.removeprefix("zipf ")) if kind.startswith("zipf") else 0.0
    weights = 1.0 / np.arange(1, groups + 1) ** skew
    if kind != "clustered":
        return rng.choice(groups, n, p=weights / weights.sum())
    flows = np.repeat(rng.integers(0, groups, n // 30 + 1), 30)[:n]
    return flows[np.argsort(np.arange(n) + rng.integers(0, 600, n), kind="stable")]


def test_extrapolated_groups_are_near_enough() -> None:
    """From runs of 16,384 tuples in all to 50,000 and half a million, over uniform, zipf (0.6, 1.0, 1.3) and clustered
    keys of 100 to 300,000 groups: half are within a factor of 1.25, nine of ten within 2.5, all within 4; none is too
    low by 2."""
    rng = np.random.default_rng(7)
    factors = []
    for kind, groups in itertools.product(
        ("uniform", "zipf 0.6", "zipf 1.0", "zipf 1.3", "clustered"), (100, 3_000, 20_000, 300_000)
    ):
        keys = keys_of(kind, groups, 500_000, rng)
        for n in (50_000, 500_000):
            starts = np.arange(16) * (n // 16)
            sample = counted(keys[(starts[:, None] + np.arange(sampling.RUN)).ravel()])
            factors.append(sample.extrapolated(n / sampling.RECORDS) / len(np.unique(keys[:n])))
    print("extrapolated/true:", np.quantile(factors, [0, 0.1, 0.5, 0.9, 1]).round(2))
    away = np.maximum(factors, 1.0 / np.array(factors))
    assert np.median(away) < 1.25
    assert np.quantile(away, 0.9) < 2.5
    assert max(factors) < 4
    assert min(factors) > 1 / 2


def test_extrapolation_at_the_edges() -> None:
    nothing = CountedGroups(0, 0, 0, 0)
    assert nothing.extrapolated(10) == 0
    every = CountedGroups(1000, 250, 500, 1000)  # each tuple a group of its own
    assert every.extrapolated(64) == pytest.approx(64_000)
    full = CountedGroups(1000, 10, 10, 10)
    assert full.extrapolated(1e6) == 10
    assert CountedGroups(1, 0, 0, 1).extrapolated(1000) >= 1
    assert full.extrapolated(0.005) == 5  # a task of five tuples


@pytest.mark.parametrize("length", [1, 5, 50])
def test_flow_lengths(length: int) -> None:
    """Flows one after the other, of as many tuples: within 15 % of the truth."""
    rng = np.random.default_rng(length)
    keys = np.repeat(rng.integers(0, 2000, sampling.RECORDS // length + 1), length)
    found = numbers_of(keys).length(GRAIN, NET)
    print(f"flows of {length}: {found:.2f}")
    assert found == pytest.approx(length, rel=0.15)


def test_too_few_groups_tell_no_flow_length() -> None:
    assert numbers_of(np.arange(1000) % 5).length(GRAIN, NET) == 1.0


def test_locality_is_what_the_order_of_tuples_saves() -> None:
    """Flows of ten in a row, and the same tuples in any order; how often groups come changes nothing."""
    rng = np.random.default_rng(2)
    skewed = rng.zipf(1.5, sampling.RECORDS) % 3000
    assert numbers_of(skewed).locality(GRAIN, NET) == pytest.approx(1.0, abs=0.1)
    flows = np.repeat(rng.integers(0, 5000, sampling.RECORDS // 10 + 1), 10)
    found = numbers_of(flows).locality(GRAIN, NET)
    print(f"flows of 10: {found:.2f}")
    assert found == pytest.approx(10, rel=0.3)
    assert numbers_of(rng.permutation(flows)).locality(GRAIN, NET) == pytest.approx(1.0, abs=0.1)


def test_groups_below_a_feeder_come_once_for_each_of_its_own() -> None:
    """Against plain counting; with queries that choose, a feeder's tuples are those of the relation."""
    rng = np.random.default_rng(3)
    a, b, kept = rng.integers(0, 30, 4000), rng.integers(0, 50, 4000), rng.random(4000) < 0.4
    layout = lay_out(
        {
            named("value:a"): (0, 29),
            named("null:a"): (0, 0),
            named("value:b"): (0, 49),
            named("null:b"): (0, 0),
            named("sieve:q"): (0, 1),
        }
    )
    words = pack_words(
        layout,
        {named("value:a"): a, named("value:b"): b, named("sieve:q"): (~kept).astype(np.int64)},
        4000,
    )
    survey = Survey(layout, words)
    net = Lattice({}, {f"value:{name}": Column(name, BIGINT) for name in "ab"}, {})
    for sieve, rows in ((("sieve:", 1), np.ones(4000, bool)), (("sieve:q", 1), kept)):
        coarse, fine = frozenset({("value:a", 129), sieve}), frozenset({("value:a", 129), ("value:b", 129), sieve})
        assert sorted(survey.below(coarse, None, net)) == sorted(np.unique(a[rows], return_counts=True)[1])
        pairs = np.unique(np.stack([a[rows], b[rows]]), axis=1)
        assert sorted(survey.below(coarse, fine, net)) == sorted(np.unique(pairs[0], return_counts=True)[1])
        assert survey.share(coarse) == pytest.approx(rows.mean())
    both = frozenset({("value:a", 129), ("value:b", 129), ("sieve:", 1), ("sieve:q", 1)})  # feeds all and the chosen
    for sieve, rows in ((("sieve:", 1), np.ones(4000, bool)), (("sieve:q", 1), kept)):
        passed = np.unique(np.stack([a, b, kept])[:, rows], axis=1)
        found = survey.below(frozenset({("value:a", 129), sieve}), both, net)
        assert sorted(found) == sorted(np.unique(passed[0], return_counts=True)[1])


def test_a_sample_is_made_of_runs_from_all_over() -> None:
    """Whatever the chunks; at least half of what a sample may have, and all of a short task."""
    rng = random.Random(4)
    for rows in (1, 500, 5000, 16_384, 16_385, 300_000):
        sampler, done = sampling.Sampler(), 0
        while done < rows:
            n = min(rows - done, rng.choice([1, 700, 4096, 32_768]) if rows < 1e5 else 32_768)
            values = np.arange(done, done + n)
            mask = values % 2 == 0 if done % 3 else None
            sampler.add(
                sampling.Chosen({"q": mask}, {named("value:k"): values}, {named("value:k"): (done, done + n - 1)}, n)
            )
            done += n
        whole = sampling._joined(sampler._runs)
        found = whole.components[named("value:k")]
        assert whole.rows == len(found) <= sampling.RECORDS
        assert len(found) > 100 or rows < 1000
        if rows > 1e5:
            assert len(found) >= sampling.RECORDS // 2
            assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx([0.1 * rows, 0.5 * rows, 0.9 * rows], rel=0.2)
        assert whole.ranges[named("value:k")][1] >= found.max()
