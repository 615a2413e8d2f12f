"""Closing windows and cutting them into items: every row in exactly one item."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import RunError
from penstock.logical.expressions import Aggregate, Column
from penstock.logical.query import Key, Query
from penstock.logical.types import BIGINT, INT
from penstock.logical.window import ROWS, Window
from penstock.relations.component import component_of as named
from penstock.relations.relation import relation_of
from penstock.runtime.merge import items as module
from penstock.runtime.merge.all_items import items
from penstock.runtime.merge.coarse import coarsened
from penstock.runtime.merge.due import MOST_WINDOWS, span
from penstock.runtime.merge.items import (
    FOREVER,
    TOGETHER,
    Cut,
    Due,
    MergeItem,
    cut_panes,
    due_items,
    row_bytes,
    share_out,
)
from penstock.runtime.merge.together.asked import Asked
from penstock.runtime.settings import TaskSettings
from penstock.state.segments.groups import Groups
from penstock.state.segments.read import Block, Segment
from penstock.state.segments.write import SegmentWriter
from support.closed import due_of, reading_of, wanting_of


def query(window: Window, name: str = "q", limit: int | None = None) -> Query:
    count = (Aggregate("count", None, BIGINT),)
    return Query(name, "s", window, None, (Key("a", Column("a", INT)),), (), None, count, None, (), limit)


def random_window(rng: np.random.Generator) -> Window:
    slide = int(rng.integers(1, 20))
    kind = int(rng.integers(5))
    if kind == 0:
        return Window(None, slide)
    if kind == 1:
        return Window(slide, slide)
    return Window(int(rng.integers(1, 400)), slide, ROWS if kind == 2 else "time")


def test_what_a_watermark_closes() -> None:
    minute = Window(60, 60)
    assert span(minute, None, None, False, None) == (0, 0)
    assert span(minute, None, 119, False, None) == (-FOREVER, 1)
    assert span(minute, 119, 120, False, None) == (1, 2)
    assert span(minute, -61, -60, False, None) == (-2, -1)
    assert span(minute, 120, 120, True, None) == (2, FOREVER)
    assert span(minute, 120, 179, False, None) == (0, 0)


def test_an_added_query_has_no_windows_before_its_first() -> None:
    minute = Window(60, 60)
    assert span(minute, None, 600, False, 7) == (7, 10)
    assert span(minute, None, 300, False, 7) == (0, 0)
    assert span(minute, 480, 600, False, 7) == (8, 10)
    assert span(minute, None, None, True, 7) == (7, FOREVER)


@pytest.mark.parametrize("window", [Window(60, 60), Window(60, 7), Window(13, 60), Window(None, 10), Window(100, 60)])
def test_as_the_watermark_moves_every_window_closes_once(window: Window) -> None:
    rng = np.random.default_rng(window.slide)
    marks = [None, *np.cumsum(rng.integers(0, 90, 40)).tolist()]
    closed: list[int] = []
    for before, after in itertools.pairwise(marks):
        first, beyond = span(window, before, after, False, None)
        first = max(first, -20)
        closed += range(first, beyond)
        assert not closed or window.end(closed[-1]) <= after
        assert window.end(window.first_open(after) or 0) > after
    first, beyond = span(window, marks[-1], marks[-1], True, None)
    assert (first, beyond) == (closed[-1] + 1, FOREVER)
    assert closed == list(range(-20, closed[-1] + 1))


# -- windows and their sizes


def blocks_of(folder: Path, query: Query, rng: np.random.Generator, times: int = 1) -> list[Block]:
    """A few segments with random panes that some window holds, coarser levels where windows are long; so many times the
    rows."""
    found: list[Block] = []
    for number in range(int(rng.integers(1, 4))):
        rows = int(rng.integers(1, 120))
        reach = int(rng.choice([3, 40, 700]))
        places = rng.integers(-reach, reach, rows) * int(rng.choice([1, 1, 37]))
        window = query.window
        panes = np.array(
            [window.panes.number(int(p)) for p in places if not window.gaps or p % window.slide < window.length]
        )
        if not len(panes):
            continue
        panes = np.repeat(panes, times)
        components = {
            named("value:a"): np.arange(len(panes)),
            named("null:a"): np.zeros(len(panes), np.int64),
        }
        groups = Groups(panes.astype(np.int64), components, {}, np.ones(len(panes), np.int64), {})
        writer = SegmentWriter(folder / f"{number}.seg", 3)
        writer.add(query.name, groups, coarsened(relation_of(query), groups, query.window.reach))
        writer.end_run({})
        writer.close()
        found += Segment(folder / f"{number}.seg").blocks
    return found


def closing(query: Query, blocks: list[Block], first: int, beyond: int, last: int | None) -> Due:
    return due_of(reading_of(query), (query,), blocks, first, beyond, last)


def held(window: Window, number: int) -> tuple[int, int]:
    """The panes of a window."""
    return -FOREVER if window.landmark else window.first_pane(number), window.beyond_pane(number)


@pytest.mark.parametrize("seed", range(80))
def test_closing_windows_are_those_with_panes(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    window = random_window(rng)
    asked = query(window)
    blocks = blocks_of(tmp_path, asked, rng)
    first = int(rng.choice([-FOREVER, rng.integers(-30, 30)]))
    beyond = int(rng.choice([FOREVER, rng.integers(-30, 60)]))
    last = int(rng.integers(-40, 80)) if window.landmark and (beyond == FOREVER or rng.random() < 0.5) else None
    found = closing(asked, blocks, first, beyond, last)
    panes = np.unique(np.concatenate([np.empty(0, np.int64), *(block.panes for block in blocks)]))
    most = 40 * 700 // window.slide + 500  # of the places in `blocks_of`
    low, high = max(first, -most), min(beyond, most if last is None else last + 1)
    expected = []
    for number in range(low, high):
        begin, end = (np.searchsorted(panes, max(pane, -(1 << 62))) for pane in held(window, number))
        expected += [number] if begin < end else []
    assert found.windows.tolist() == expected, (seed, window)
    for at in rng.permutation(len(expected))[:50].tolist():
        read = sum(stop - start for block in blocks for _, start, stop in block.cover(*held(window, expected[at])))
        assert found.rows[at] == read, (seed, window, expected[at])


@pytest.mark.parametrize("seed", range(80))
def test_relations_with_the_same_panes_ask_once(tmp_path: Path, seed: int) -> None:
    """And each has what it would have if it asked alone."""
    rng = np.random.default_rng(seed)
    asked = query(random_window(rng))
    first = int(rng.choice([-FOREVER, rng.integers(-30, 30)]))
    beyond = int(rng.choice([FOREVER, rng.integers(-30, 60)]))
    last = int(rng.integers(-40, 80)) if asked.window.landmark else None
    once, reading = Asked(first, beyond, last), reading_of(asked)
    for number, (panes, times) in enumerate([(0, 1), (0, 3), (1, 1), (0, 2)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        blocks = blocks_of(folder, asked, np.random.default_rng(seed + panes), times)
        alone = closing(asked, blocks, first, beyond, last)
        together = once.due(reading, wanting_of(reading, asked), blocks)
        assert together.windows.tolist() == alone.windows.tolist(), (seed, number)
        assert together.rows.tolist() == alone.rows.tolist(), (seed, number)


def test_sizes_are_those_of_a_cover_at_the_ends_of_time(tmp_path: Path) -> None:
    for slide in (1, 1 << 20):
        for far in (1 << 61, -(1 << 61)):
            asked = query(Window(None, slide))
            panes = np.array([far // slide, far // slide + 3])
            groups = Groups(panes, {named("value:a"): panes, named("null:a"): panes * 0}, {}, panes * 0 + 1, {})
            path = tmp_path / f"{slide}{far}.seg"
            writer = SegmentWriter(path, 1)
            writer.add("q", groups)
            writer.end_run({})
            writer.close()
            found = closing(asked, Segment(path).blocks, -FOREVER, FOREVER, int(panes[-1]))
            assert found.windows.tolist() == list(range(int(panes[0]), int(panes[1]) + 1))
            assert found.rows.tolist() == [1, 1, 1, 2]


def test_a_leap_of_time_is_refused(tmp_path: Path) -> None:
    """A landmark window, or a long one, over a wild time would close without end."""
    panes = np.array([0, 10 * MOST_WINDOWS])
    groups = Groups(panes, {named("value:a"): panes, named("null:a"): panes * 0}, {}, panes * 0 + 1, {})
    writer = SegmentWriter(tmp_path / "s.seg", 1)
    writer.add("q", groups)
    writer.end_run({})
    writer.close()
    blocks = Segment(tmp_path / "s.seg").blocks
    with pytest.raises(
        RunError, match=r"query 'q' would close 40,000,001 windows at once: the stream's time has leapt"
    ):
        closing(query(Window(None, 1)), blocks, -FOREVER, FOREVER, int(panes[-1]))
    assert closing(query(Window(1, 1)), blocks, -FOREVER, FOREVER, None).windows.tolist() == panes.tolist()
    assert len(closing(query(Window(5, 1)), blocks, -FOREVER, FOREVER, None).windows) == 10


# -- items


def made(query: Query, windows: np.ndarray, rows: np.ndarray) -> Due:
    reading = reading_of(query)
    return Due(reading, wanting_of(reading, query), windows, rows)


def cuts_of(query: Query, windows: np.ndarray, rows: np.ndarray, limit: int, slots: int) -> list[Cut]:
    """Of one query whose items have at most so many rows."""
    one = made(query, windows, rows)
    settings = TaskSettings(task_memory=limit * row_bytes(one.wanting[0].groups.wanted), slots=slots)
    return [item.cut for item in due_items(0, one, limit, settings)]


def assert_covered(cut: list[Cut], windows: np.ndarray, slots: int) -> None:
    """Every window, slot and pass in exactly one item."""
    assert len({item.part for item in cut}) == len(cut)
    for window in windows:
        covered = [i for i in cut if i.first <= window < i.beyond]
        passes = covered[0].passes
        parts = sorted((item.low, item.high, item.turn) for item in covered)
        edges = sorted({(low, high) for low, high, _ in parts})
        assert edges[0][0] == 0
        assert edges[-1][1] == slots
        assert all(a[1] == b[0] for a, b in itertools.pairwise(edges))
        assert parts == [(low, high, turn) for low, high in edges for turn in range(passes)]


@pytest.mark.parametrize("seed", range(30))
def test_items_cover_every_window_slot_and_pass_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    windows = np.unique(rng.integers(-50, 50, int(rng.integers(1, 40))))
    rows = rng.integers(1, 2000, len(windows))
    slots, limit = int(rng.integers(1, 9)), int(rng.integers(1, 3000))
    cut = list(cut_panes(windows, rows, limit, slots))
    assert_covered(cut, windows, slots)
    assert all(item.rows <= limit for item in cut)


@pytest.mark.parametrize("seed", range(10))
def test_few_overlapping_windows_stand_in_one_item(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    windows, together = np.arange(200), int(rng.integers(1, 30))
    monkeypatch.setattr(module, "TOGETHER", together)
    cut = cuts_of(query(Window(9, 1)), windows, rng.integers(0, 5, 200), 10**9, 4)
    assert_covered(cut, windows, 4)
    assert max(item.beyond - item.first for item in cut) == together
    assert len(cut) == -(-200 // together)


@pytest.mark.parametrize("seed", range(10))
def test_a_window_with_a_limit_stays_in_one_item(seed: int) -> None:
    """Only who sees a whole window knows its first rows; passes keep that within memory."""
    rng = np.random.default_rng(seed)
    windows, rows = np.arange(30), rng.integers(1, 2000, 30)
    limit = int(rng.integers(1, 1500))
    cut = cuts_of(query(Window(9, 9), limit=1), windows, rows, limit, 8)
    assert [(item.low, item.high, item.turn) for item in cut] == [(0, 8, None)] * len(cut)
    assert [n for item in cut for n in range(item.first, item.beyond)] == windows.tolist()
    for item in cut:
        assert item.rows <= limit * item.passes


def test_items_of_a_batch() -> None:
    closed = [
        made(query(Window(60, 60), "tumbling"), np.arange(1000), np.full(1000, 10)),
        made(query(Window(120, 60), "sliding"), np.arange(1000), np.full(1000, 10)),
        made(query(Window(60, 60), "limited", limit=3), np.arange(2), np.array([10, 100_000])),
    ]
    bytes_per_row = row_bytes(closed[0].wanting[0].groups.wanted)
    cut = items(closed, TaskSettings(task_memory=20_000 * bytes_per_row, slots=4), 2)
    tumbling, sliding, limited = ([i.cut for i in cut if i.of == number] for number in range(3))
    assert [(item.first, item.beyond) for item in tumbling] == [(0, 1000)]
    assert_covered(sliding, np.arange(1000), 4)
    assert max(item.beyond - item.first for item in sliding) == TOGETHER
    assert [(item.first, item.beyond, item.passes) for item in limited] == [(0, 1, 1), (1, 2, 5)]
    assert items([], TaskSettings(), 2) == []


def test_shares_have_all_items_once() -> None:
    cut = [MergeItem(0, ("q",), Cut(part, 0, 1, 0, 1, rows=part * 1000)) for part in range(9)]
    shares = share_out(cut, 4)
    assert sorted(item.cut.part for share in shares for item in share) == list(range(9))
    assert len(share_out(cut[:2], 4)) == 2
    assert share_out([], 4) == []
