"""Surveys: counts against brute force, and how far extrapolated groups and flow lengths are from the truth."""

from __future__ import annotations

import ipaddress
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.logical.resolve import resolve_app
from penstock.runtime import sampling
from penstock.runtime.lfta import sampled
from penstock.runtime.survey import Counted, Survey
from penstock.sharing.grain import union
from penstock.sharing.lattice import Lattice, lattice
from penstock.sharing.plan import relations, unshared_plan
from penstock.sources.registry import open_source

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
    found = sampled(unshared_plan(app, "s"), open_source(app.streams[0].source, {}))
    assert found is not None
    return found, lattice(relations(app, "s"))


def brute(rows: list[Row], asked: list[Asked]) -> tuple[int, int, int, int]:
    """Tuples, and groups in a quarter, a half and all of them, of the relation that feeds all these queries."""
    chosen = [row for row in rows if any(q.takes(row) for q in asked)]
    keys = [tuple(q.key(row) for q in asked) for row in chosen]
    n = len(keys)
    return n, len(set(keys[: n // 4])), len(set(keys[: n // 2])), len(set(keys))


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
    rows = [{"ts": i, "a": i % 7, "b": i, "name": "x", "src": None} for i in range(sampling.TUPLES + 10)]
    survey, net = surveyed(rows, [Asked(("a",), "[RANGE '10 seconds' SLIDE '10 seconds']", "")], tmp_path)
    assert survey.tuples == sampling.TUPLES
    assert survey.counted(net.grains["q0"], net).groups == 7


def numbers_of(keys: np.ndarray) -> Survey:
    """A survey of keys that are one number."""
    from penstock.sharing.layout import Layout, Place

    return Survey(Layout({"value:k": Place(0, 0, 64, 0)}, 1), keys[: sampling.TUPLES].astype(np.uint64).reshape(1, -1))


def counted(keys: np.ndarray) -> Counted:
    from penstock.logical.expressions import Column
    from penstock.logical.types import BIGINT

    grain = frozenset({("value:k", 129)})
    net = Lattice({"q": grain}, {"value:k": Column("k", BIGINT)}, {})
    survey = numbers_of(keys)
    survey.layout.places["null:k"] = survey.layout.places["value:k"].__class__(0, 0, 0, 0)  # type: ignore[index]
    return survey.counted(grain, net)


def keys_of(kind: str, groups: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """`clustered`: flows of 30 tuples, some twenty of them at a time."""
    skew = float(kind.removeprefix("zipf ")) if kind.startswith("zipf") else 0.0
    weights = 1.0 / np.arange(1, groups + 1) ** skew
    if kind != "clustered":
        return rng.choice(groups, n, p=weights / weights.sum())
    flows = np.repeat(rng.integers(0, groups, n // 30 + 1), 30)[:n]
    return flows[np.argsort(np.arange(n) + rng.integers(0, 600, n), kind="stable")]


def test_extrapolated_groups_are_near_enough() -> None:
    """From 16,384 tuples to 50,000 and half a million, over uniform, zipf (0.6, 1.0, 1.3) and clustered keys of 100 to
    300,000 groups: half are within a factor of 1.25, nine of ten within 2.5, all within 4; none is too low by 2."""
    rng = np.random.default_rng(7)
    factors = []
    for kind, groups in itertools.product(
        ("uniform", "zipf 0.6", "zipf 1.0", "zipf 1.3", "clustered"), (100, 3_000, 20_000, 300_000)
    ):
        keys = keys_of(kind, groups, 500_000, rng)
        sample = counted(keys)
        for n in (50_000, 500_000):
            factors.append(sample.extrapolated(n / sampling.TUPLES) / len(np.unique(keys[:n])))
    print("extrapolated/true:", np.quantile(factors, [0, 0.1, 0.5, 0.9, 1]).round(2))
    away = np.maximum(factors, 1.0 / np.array(factors))
    assert np.median(away) < 1.25
    assert np.quantile(away, 0.9) < 2.5
    assert max(factors) < 4
    assert min(factors) > 1 / 2


def test_extrapolation_at_the_edges() -> None:
    nothing = Counted(0, 0, 0, 0, 1.0)
    assert nothing.extrapolated(10) == 0
    every = Counted(1000, 250, 500, 1000, 1.0)  # each tuple a group of its own
    assert every.extrapolated(64) == pytest.approx(64_000)
    full = Counted(1000, 10, 10, 10, 1.0)
    assert full.extrapolated(1e6) == 10
    assert Counted(1, 0, 0, 1, 1.0).extrapolated(1000) >= 1
    assert full.extrapolated(0.005) == 5  # a task of five tuples


@pytest.mark.parametrize("length", [1, 5, 50])
def test_flow_lengths(length: int) -> None:
    """Flows one after the other, of as many tuples: within 15 % of the truth."""
    rng = np.random.default_rng(length)
    keys = np.repeat(rng.integers(0, 2000, sampling.TUPLES // length + 1), length)
    found = counted(keys).length
    print(f"flows of {length}: {found:.2f}")
    assert found == pytest.approx(length, rel=0.15)


def test_too_few_groups_tell_no_flow_length() -> None:
    assert counted(np.arange(1000) % 5).length == 1.0
