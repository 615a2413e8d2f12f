"""Compaction: which segments are merged over many batches, and what of them is kept."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.logical.query import Field, Query, QuerySet, Stream
from penstock.logical.types import BIGINT, TIMESTAMP
from penstock.logical.window import ROWS, Window
from penstock.relations.relation import named
from penstock.relations.storage import Storage
from penstock.runtime.batch.close import live, open_panes
from penstock.runtime.batch.compaction import MOST, apart, chosen, gathered, keeps_of
from penstock.runtime.merge.items import FOREVER
from penstock.sharing.options import NONE, Planning
from penstock.sharing.plan import unshared_plans
from penstock.state.protocol import SegmentRef, StreamState
from penstock.state.segments.opened import Segments
from penstock.state.versions import first_version


def segment(unit: str, task: int, size: float) -> SegmentRef:
    return SegmentRef(f"{unit}-{task}.seg", round(1000 * size), 0, {"q": (0, 1)}, unit)


def units(*sizes: float, tasks: int = 1) -> list[SegmentRef]:
    return [segment(str(n), task, size / tasks) for n, size in enumerate(sizes) for task in range(tasks)]


@pytest.mark.parametrize("tasks", [1, 3, 40])
def test_few_units_stay_as_they_are(tasks: int) -> None:
    for count in range(MOST + 1):
        assert chosen(units(*[100] * count, tasks=tasks)) == count * tasks


@pytest.mark.parametrize("tasks", [1, 3, 40])
def test_of_more_the_newest_are_merged_from_the_first_that_is_not_larger_than_all_after_it(tasks: int) -> None:
    assert chosen(units(*[100] * (MOST + 1), tasks=tasks)) == 0
    assert chosen(units(10**9, *[100] * MOST, tasks=tasks)) == tasks
    assert chosen(units(10**9, 5, *[100] * MOST, tasks=tasks)) == tasks
    # Each larger than all after it: the last two make one.
    assert chosen(units(*(3 ** (MOST - n) for n in range(MOST + 1)), tasks=tasks)) == (MOST - 1) * tasks


@dataclass
class Batches:
    """Batch after batch: each task leaves a segment of new groups; a compaction leaves `parts` of equal size."""

    tasks: int
    parts: int
    rng: random.Random
    segments: list[SegmentRef] = field(default_factory=list)
    written: float = 0
    rewritten: float = 0
    compactions: int = 0
    most: int = 0

    def run(self, batches: int) -> None:
        for batch in range(batches):
            for task in range(self.tasks):
                size = self.rng.uniform(50, 150)
                self.segments.append(segment(f"{batch}", task, size))
                self.written += size
            at = chosen(self.segments)
            merged = sum(one.bytes / 1000 for one in self.segments[at:])
            if merged:
                self.compactions += 1
                self.rewritten += merged
                parts = [segment(f"{batch} compacted", n, merged / self.parts) for n in range(self.parts)]
                self.segments[at:] = parts
            self.most = max(self.most, len({one.unit for one in self.segments}))


@pytest.mark.parametrize(("tasks", "parts"), [(1, 1), (2, 1), (2, 2), (8, 1), (1, 4), (1, 8), (8, 8), (1, 16)])
def test_units_stay_few_and_a_group_is_rewritten_a_logarithmic_number_of_times(tasks: int, parts: int) -> None:
    """No two groups are the same, none is ever closed: the worst case. However many tasks compact, it is the same."""
    for count in (100, 500, 2000, 8000):
        batches = Batches(tasks, parts, random.Random(count))
        batches.run(count)
        assert batches.most <= MOST, count
        assert len(batches.segments) <= MOST * max(tasks, parts), count
        assert batches.rewritten <= batches.written * math.log2(count), (count, batches.rewritten / batches.written)


@pytest.mark.parametrize("parts", [1, 2, 16])
def test_not_every_batch_compacts(parts: int) -> None:
    batches = Batches(1, parts, random.Random(parts))
    batches.run(500)
    assert batches.compactions <= 500 / 2, batches.compactions


@pytest.mark.parametrize(("groups", "each"), [(1000, 10), (1000, 50), (1000, 500), (10_000, 10)])
def test_about_twice_the_groups_are_kept(groups: int, each: int) -> None:
    """Batches bring the same groups again: what is kept after a compaction against one merged segment."""
    rng, segments = random.Random(groups), []
    for batch in range(1500):
        segments.append(frozenset(rng.sample(range(groups), each)))
        at = chosen([segment(str(n), 0, len(one)) for n, one in enumerate(segments)])
        if at < len(segments):
            segments[at:] = [frozenset().union(*segments[at:])]
            assert sum(map(len, segments)) <= 3 * len(frozenset().union(*segments)), batch


# -- what is kept


SECOND = 1_000_000


def query(name: str, stream: str, window: Window, hidden: bool = False) -> Query:
    return Query(name, stream, window, None, (), (), None, (), None, hidden=hidden)


STREAM = Stream("s", (Field("ts", TIMESTAMP), Field("n", BIGINT)), "x", (), "ts", delay=0)
APP = QuerySet(
    (STREAM,),
    (
        query("second", "s", Window(SECOND, SECOND)),
        query("sliding", "s", Window(60 * SECOND, SECOND)),
        query("cut", "s", Window(5 * SECOND, 2 * SECOND)),
        query("landmark", "s", Window(None, SECOND)),
        query("rows", "s", Window(10, 4, ROWS)),
        query("more", "s", Window(102, 4, ROWS)),
        query("above", "second", Window(60 * SECOND, 60 * SECOND)),
    ),
)
BOUNDS = "#pane:rows:4:2"
NOTHING = Segments(Path(), ())
VERSION = first_version(APP, lambda since: unshared_plans(APP), {}, Planning(NONE))
LABELS = {name: label for plan in VERSION.plans.values() for name, label in plan.stored.labels.items()}


def labelled(found: dict[str, Any]) -> dict[str, Any]:
    """By the queries of each relation. Those on one stream that count the same panes are stored once."""
    return {LABELS[name]: value for name, value in found.items()}


def state(watermark: int | None, row: int = 0, ended: bool = False) -> dict[str, StreamState]:
    known = StreamState(row, watermark, watermark, 0, ended)
    return {"s": known, "second": replace(known, watermark=None, row=0)}


def test_the_first_pane_that_is_still_needed() -> None:
    assert labelled(open_panes(VERSION, state(100 * SECOND + 1, row=207), NOTHING)) == {
        "second+sliding": 41,  # window 41 of the second ends at 101 s
        "cut": 2 * 48,  # window 48 is [96 s, 101 s)
        "landmark": -FOREVER,
        "rows+more": 2 * 27,  # window 27 of the second is [108, 210)
        "above": 1,
        BOUNDS: 2 * 27,  # as the longest of those that need it
    }


def test_without_a_watermark_everything_is_needed_and_after_the_end_nothing() -> None:
    open_ = labelled(open_panes(VERSION, state(None, row=0), NOTHING))
    assert {name for name, floor in open_.items() if floor == -FOREVER} == {
        "second+sliding", "cut", "landmark", "above",
    }  # fmt: skip
    assert set(open_panes(VERSION, state(100 * SECOND, ended=True), NOTHING).values()) == {FOREVER}


def test_live_segments() -> None:
    """A segment lives as long as it has a pane of an open window of some query."""

    def holding(**panes: tuple[int, int]) -> SegmentRef:
        return SegmentRef(repr(panes), 0, 0, panes)

    one, both = holding(second=(0, 3)), holding(second=(0, 3), sliding=(0, 60))
    empty, dropped = holding(), holding(gone=(0, 1 << 62))
    every = [one, both, empty, dropped]
    floors = {"second": 3, "sliding": 10, "landmark": -FOREVER}
    assert live(every, floors) == [one, both]
    assert live(every, floors | {"second": 4}) == [both]
    assert live(every, floors | {"second": 4, "sliding": 61}) == []
    assert live(every, dict.fromkeys(floors, -FOREVER)) == [one, both]
    assert live(every, dict.fromkeys(floors, FOREVER)) == []
    assert live([holding(landmark=(-5, -5))], floors) != []


def test_what_a_compaction_keeps() -> None:
    streams = state(100 * SECOND + 1, row=207)
    floors = open_panes(VERSION, streams, NOTHING)
    keeps = keeps_of(VERSION, floors, streams)
    assert set(labelled(keeps)) == {"second+sliding", "cut", "landmark", "rows+more", "above", BOUNDS}
    assert {name: keep.first for name, keep in keeps.items()} == floors
    assert {name: keep.reach for name, keep in labelled(keeps).items()} == {
        "second+sliding": 60, "cut": 5, "landmark": 1 << 62, "rows+more": 51, "above": 1, BOUNDS: 51,
    }  # fmt: skip
    # The next landmark window to close ends at 101 s: number 100.
    gathers = {name: keep.gather for name, keep in labelled(keeps).items()}
    assert {name: gather for name, gather in gathers.items() if gather is not None} == {"landmark": 100}
    unknown = labelled(keeps_of(VERSION, open_panes(VERSION, state(None), NOTHING), state(None)))
    assert unknown["landmark"].gather is None
    assert keeps_of(VERSION, dict.fromkeys(floors, FOREVER), streams) == {}


def test_segments_that_no_query_may_read_together_are_compacted_apart() -> None:
    """Of the second storage a query must not read a relation that it reads of the first."""
    relation = VERSION.storage.relations[0]
    other = named(replace(relation, stream="other"))
    storages = [
        Storage(0, (relation,), {"q": relation.name}),
        Storage(1, (relation, other), {"q": other.name, "p": relation.name}),
        Storage(2, (other,), {"q": other.name}),
    ]
    refs = [SegmentRef(str(n), 1, 1, {}, storages=(storage,)) for n, storage in enumerate((0, 0, 1, 2, 0))]
    assert [[ref.path for ref in lot] for lot in apart(refs, storages)] == [["0", "1", "3", "4"], ["2"]]


def test_gathered_panes() -> None:
    import numpy as np

    panes = np.array([-5, 0, 7, 9])
    assert gathered(panes, None).tolist() == [-5, 0, 7, 9]
    assert gathered(panes, 7).tolist() == [7, 7, 7, 9]
