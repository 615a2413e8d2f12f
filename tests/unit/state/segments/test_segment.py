"""Segments: what goes in comes out, by pane and slot; what was damaged is noticed."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.errors import StateError
from penstock.kernels.dictionary import Dictionary
from penstock.relations.component import Component
from penstock.relations.component import component_of as part
from penstock.state.protocol import SegmentRef
from penstock.state.segments.groups import Groups
from penstock.state.segments.read import FAN, PAGE, TAIL, Block, Segment, cover
from penstock.state.segments.write import SegmentWriter

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
LAST_PANE = GREATEST - 2  # of a usable time: `runtime.task.times`
STRINGS = [b"", b"a", "é".encode(), b"x" * 300, b"a\0b", *(b"s%d" % n for n in range(40))]
TEXT, ADDRESS, NUMBER = part("value:host"), part("inet6:src"), part("value:n")
SUM, WIDE, FLOAT = State("sum", "n"), State("sum", "wide"), State("max", "x")


def dictionary(strings: list[bytes]) -> Dictionary:
    made = Dictionary()
    start = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    made.intern(start, np.frombuffer(b"".join(strings), np.uint8))
    return made


def integers(dice: np.random.Generator, rows: int) -> np.ndarray:
    """Integers of a random width, the extremes among them at times."""
    bits = int(dice.integers(0, 63))
    values = dice.integers(-(1 << bits), (1 << bits), rows, endpoint=bits < 63)
    if rows and dice.random() < 0.5:
        values[dice.integers(0, rows)] = dice.choice([LEAST, GREATEST])
    return values


def random_groups(seed: int, rows: int, strings: Dictionary, addresses: Dictionary) -> Groups:
    dice = np.random.default_rng(seed)
    floats = dice.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 3.5], rows)
    return Groups(
        dice.integers(-5, 5, rows) * int(dice.choice([1, 10**12])),
        {
            NUMBER: integers(dice, rows),
            TEXT: dice.integers(0, strings.count, rows),
            ADDRESS: dice.integers(0, addresses.count + 1, rows),
            part("null:n"): dice.integers(0, 2, rows),
        },
        {TEXT: strings, ADDRESS: addresses},
        dice.integers(1, 1 << int(dice.integers(1, 63)), rows),
        {SUM: (integers(dice, rows),), WIDE: (integers(dice, rows), integers(dice, rows)), FLOAT: (floats,)},
    )


def rows_in(groups: Groups) -> list[tuple[Any, ...]]:
    """The groups as plain tuples with strings instead of codes."""
    codes = {name: _strings(d.offsets, d.data) for name, d in groups.dictionaries.items()}
    columns = [_decoded(name, values, codes) for name, values in groups.components.items()]
    words = [word.view(np.int64).tolist() for state in groups.states.values() for word in state]
    return sorted(zip(groups.panes.tolist(), groups.count.tolist(), *columns, *words, strict=True), key=repr)


def rows_out(block: Block, start: int, stop: int) -> list[tuple[Any, ...]]:
    names = [name for name in block.shape.names if ":" in name]
    codes = {name: _strings(*block.dictionary(name)) for name in (TEXT, ADDRESS)}
    columns = [_decoded(part(name), block.column(name, start, stop), codes) for name in names]
    words = [block.column(w, start, stop).view(np.int64).tolist() for state in block.states.values() for w in state]
    counts = block.column("count", start, stop).tolist()
    return sorted(zip(block.pane_numbers(start, stop).tolist(), counts, *columns, *words, strict=True), key=repr)


def _strings(offsets: np.ndarray, data: np.ndarray) -> list[bytes]:
    whole = data.tobytes()
    return [whole[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def _decoded(name: Component, values: np.ndarray, codes: dict[Component, list[bytes]]) -> list[Any]:
    if name not in codes:
        return values.tolist()
    return [codes[name][v - name.code_base] if v >= name.code_base else None for v in values.tolist()]


def write(path: Path, seed: int, sizes: list[int], slots: int = 32) -> tuple[SegmentRef, list[Groups]]:
    """A segment of one block per size and a run per two blocks, of query q0, q1, q0, …"""
    writer, made = SegmentWriter(path, slots), []
    for number, rows in enumerate(sizes):
        if number % 2 == 0:
            strings = dictionary(random.Random(seed + number).sample(STRINGS, 20))
            addresses = dictionary([bytes([number, k]) * 8 for k in range(9)])
        groups = random_groups(seed + number, rows, strings, addresses)
        writer.add(f"q{number % 2}", groups)
        made.append(groups)
        if number % 2 == 1 or number == len(sizes) - 1:
            writer.end_run({TEXT: strings, ADDRESS: addresses})
    return writer.close(), made


def slots_of(block: Block) -> np.ndarray:
    """The slot of every row."""
    lengths = np.diff(block.cuts)
    return np.repeat(np.arange(len(lengths)) % block.segment.slots, lengths)


def read_everything(path: Path, reference: SegmentRef | None = None) -> None:
    segment = Segment(path, reference)
    for block in segment.blocks:
        rows_out(block, 0, block.rows)
        slots_of(block)


@pytest.mark.parametrize("seed", range(12))
def test_groups_come_back(tmp_path: Path, seed: int) -> None:
    sizes = [int(n) for n in np.random.default_rng(seed).integers(0, 400, 5)]
    reference, made = write(tmp_path / "s.seg", seed, sizes, slots=[1, 5, 32, 256][seed % 4])
    assert reference.bytes == (tmp_path / "s.seg").stat().st_size
    segment = Segment(tmp_path / "s.seg", reference)
    assert [block.relation for block in segment.blocks] == ["q0", "q1", "q0", "q1", "q0"]
    assert [block.run for block in segment.of("q0")] == [0, 1, 2]
    for block, groups in zip(segment.blocks, made, strict=True):
        assert rows_out(block, 0, block.rows) == rows_in(groups)


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_groups(tmp_path: Path, rows: int) -> None:
    reference, made = write(tmp_path / "s.seg", 3, [rows])
    (block,) = Segment(tmp_path / "s.seg", reference).blocks
    assert rows_out(block, 0, rows) == rows_in(made[0])
    assert block.row_range(LEAST, GREATEST) == (0, rows)


def test_a_task_without_groups_leaves_a_valid_segment(tmp_path: Path) -> None:
    reference = SegmentWriter(tmp_path / "s.seg", 32).close()
    assert Segment(tmp_path / "s.seg", reference).blocks == []


@pytest.mark.parametrize("values", [[LEAST, GREATEST], [LEAST], [GREATEST], [0, 255], [0, 256], [-1, 1 << 32], [7, 7]])
def test_extreme_columns(tmp_path: Path, values: list[int]) -> None:
    column = np.array(values, np.int64)
    groups = Groups(np.zeros(len(values), np.int64), {NUMBER: column}, {}, np.ones(len(values), np.int64), {})
    writer = SegmentWriter(tmp_path / "s.seg", 1)
    writer.add("q", groups)
    writer.end_run({})
    writer.close()
    (block,) = Segment(tmp_path / "s.seg").blocks
    assert block.column(NUMBER.text, 0, block.rows).tolist() == values
    assert block.spans([NUMBER.text]) == [(min(values), max(values))]


def test_panes_and_slots_are_found(tmp_path: Path) -> None:
    """Any cut into ranges of panes and of slots gives each row once."""
    _, made = write(tmp_path / "s.seg", 5, [3_000])
    (block,) = Segment(tmp_path / "s.seg").blocks
    windows = np.unique(made[0].panes)
    for first, beyond in [(windows[0], windows[3]), (windows[3], windows[-1] + 1), (windows[-1] + 1, GREATEST)]:
        start, stop = block.row_range(int(first), int(beyond))
        inside = (made[0].panes >= first) & (made[0].panes < beyond)
        assert stop - start == inside.sum()
        assert set(rows_out(block, start, stop)) == {row for row in rows_in(made[0]) if first <= row[0] < beyond}
    starts = block.starts
    for start, stop in pairwise(starts):
        slots = slots_of(block)[int(start) : int(stop)]
        assert (np.diff(slots) >= 0).all()
        assert slots.max() < 32


@pytest.mark.parametrize("rows", [30, 3_000])
def test_where_slots_begin(tmp_path: Path, rows: int) -> None:
    """Stored as such of long panes, and from the slot of every row of short ones."""
    write(tmp_path / "s.seg", 6, [rows], slots=8)
    (block,) = Segment(tmp_path / "s.seg").blocks
    assert block.slotted == (rows == 30)
    assert block.cuts[:: block.segment.slots].tolist() == block.starts.tolist()
    slots = slots_of(block)
    for first, last in [(0, 1), (0, len(block.panes)), (2, 4)]:
        begin, end = int(block.starts[first]), int(block.starts[last])
        for low, high in [(0, 8), (3, 4), (2, 7), (5, 5)]:
            found = [row for a, b in zip(*block.runs(begin, end, low, high), strict=True) for row in range(a, b)]
            assert found == [row for row in range(begin, end) if low <= slots[row] < high]


def test_a_group_has_the_same_slot_in_every_segment(tmp_path: Path) -> None:
    """Other codes, other order, other task: blocks of any two tasks meet in the same slot."""
    strings = list(STRINGS)
    slots: list[dict[bytes, int]] = []
    for turn in range(2):
        random.Random(turn).shuffle(strings)
        known, rows = dictionary(strings), len(strings)
        components = {TEXT: np.arange(rows), part("null:host"): np.zeros(rows, np.int64)}
        groups = Groups(np.full(rows, turn), components, {TEXT: known}, np.ones(rows, np.int64), {})
        writer = SegmentWriter(tmp_path / f"{turn}.seg", 16)
        writer.add("q", groups)
        writer.end_run({TEXT: known})
        writer.close()
        (block,) = Segment(tmp_path / f"{turn}.seg").blocks
        named = _strings(*block.dictionary(TEXT))
        order = [named[code] for code in block.column(TEXT.text, 0, rows).tolist()]
        slots.append(dict(zip(order, slots_of(block).tolist(), strict=True)))
    assert slots[0] == slots[1]


def test_any_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s.seg"
    reference, _ = write(path, 7, [200, 100])
    whole = path.read_bytes()
    dice = random.Random(7)
    places = {0, 8, len(whole) - TAIL.size, len(whole) - 1, *(dice.randrange(len(whole)) for _ in range(200))}
    for place in sorted(places):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << dice.randrange(8))]) + whole[place + 1 :])
        with pytest.raises(StateError, match=r"segment .*/s\.seg is damaged"):
            read_everything(path, reference)
        with pytest.raises(StateError, match=r"segment .*/s\.seg is damaged"):
            read_everything(path)


def test_a_cut_off_or_missing_segment_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s.seg"
    reference, _ = write(path, 9, [50])
    whole = path.read_bytes()
    for size in [0, 1, TAIL.size, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:size])
        for known in (reference, None):
            with pytest.raises(StateError, match=r"segment .*/s\.seg"):
                Segment(path, known)
    path.unlink()
    with pytest.raises(StateError, match=r"segment .*/s\.seg cannot be read"):
        Segment(path, reference)


def test_another_segment_in_its_place_is_noticed(tmp_path: Path) -> None:
    first, _ = write(tmp_path / "a.seg", 1, [50])
    write(tmp_path / "b.seg", 2, [50])
    with pytest.raises(StateError, match=r"b\.seg"):
        Segment(tmp_path / "b.seg", first)


def test_pages_are_verified_where_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.seg"
    reference, _ = write(path, 11, [120_000])
    whole = bytearray(path.read_bytes())
    assert len(whole) > 4 * PAGE
    read_everything(path, reference)
    column = Segment(path).blocks[0].where("sum wide 1")
    place = column.at + 3 * column.size
    whole[place] ^= 1
    path.write_bytes(whole)
    (block,) = Segment(path, reference).blocks
    page = place // PAGE
    assert len(block.panes) > 0  # at the front: intact
    far = (page + 1) * PAGE - column.at
    rows = far // column.size + 1
    block.column("sum wide 1", rows, rows + 10)
    with pytest.raises(StateError, match=rf"s\.seg is damaged between bytes {page * PAGE} and {(page + 1) * PAGE}"):
        block.column("sum wide 1", 0, 10)


def test_a_segment_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path / "s.seg", 1, [5])
    with pytest.raises(FileExistsError):
        SegmentWriter(tmp_path / "s.seg", 32)


# -- panes and coarser levels


@pytest.mark.parametrize("seed", range(60))
def test_a_cover_has_each_pane_once(seed: int) -> None:
    dice = random.Random(seed)
    level = dice.randint(0, 4)
    first = dice.randint(-5_000, 5_000)
    beyond = first + dice.choice([0, 1, 7, 8, 9, 63, 64, 65, 600, dice.randint(0, 9_000)])
    found = list(cover(first, beyond, level))
    panes = [pane for at, low, high in found for pane in range(low * FAN**at, high * FAN**at)]
    assert sorted(panes) == list(range(first, beyond))
    assert all(low < high for _, low, high in found)
    for at in range(level):
        mine = [(low, high) for found_at, low, high in found if found_at == at]
        assert len(mine) <= 2  # at each end
        assert all(high - low < 2 * FAN for low, high in mine)


def test_a_cover_may_be_empty() -> None:
    assert list(cover(5, 5, 3)) == list(cover(6, 5, 0)) == []


def coarse_of(groups: Groups, levels: int) -> list[Groups]:
    """Levels as the writer gets them (rows are not merged here: what is stored where is all that matters)."""
    made = []
    for _ in range(levels):
        groups = replace(groups, panes=groups.panes // FAN)
        made.append(groups)
    return made


@pytest.mark.parametrize("seed", range(8))
def test_levels_hold_the_panes_of_any_range_once(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    strings, addresses = dictionary(STRINGS), dictionary([bytes([k]) * 16 for k in range(9)])
    groups = random_groups(seed, 700, strings, addresses)
    groups = replace(groups, panes=np.random.default_rng(seed).integers(-900, 900, 700) // dice.choice([1, 50]))
    groups.components[part("value:id")] = np.arange(700)
    writer, levels = SegmentWriter(tmp_path / "s.seg", 4), dice.randint(0, 3)
    writer.add("q", groups, coarse_of(groups, levels))
    writer.end_run({TEXT: strings, ADDRESS: addresses})
    reference = writer.close()
    assert reference.panes == {"q": (int(groups.panes.min()), int(groups.panes.max()))}
    (block,) = Segment(tmp_path / "s.seg", reference).blocks
    assert len(block.levels) == levels + 1
    for _ in range(30):
        first = dice.choice([-(1 << 64), dice.randint(-1000, 1000)])
        beyond = dice.choice([1 << 64, dice.randint(-1000, 1000)])
        ranges = block.cover(first, beyond)
        found = [row for level, start, stop in ranges for row in level.column("value:id", start, stop).tolist()]
        inside = np.flatnonzero([first <= pane < beyond for pane in groups.panes.tolist()])
        assert sorted(found) == inside.tolist(), (seed, first, beyond)
        start, stop = block.row_range(first, beyond)
        assert sorted(block.column("value:id", start, max(start, stop)).tolist()) == inside.tolist()


def test_panes_of_any_rows(tmp_path: Path) -> None:
    write(tmp_path / "s.seg", 13, [500])
    (block,) = Segment(tmp_path / "s.seg").blocks
    everything = np.repeat(block.panes, np.diff(block.starts))
    dice = random.Random(13)
    for _ in range(300):
        start = dice.randint(0, 500)
        stop = dice.randint(start, 500)
        assert block.pane_numbers(start, stop).tolist() == everything[start:stop].tolist(), (start, stop)


def test_a_reference_says_which_panes_each_query_has(tmp_path: Path) -> None:
    reference, made = write(tmp_path / "s.seg", 17, [40, 30, 20, 10])
    for query, mine in (("q0", made[0::2]), ("q1", made[1::2])):
        panes = np.concatenate([groups.panes for groups in mine])
        assert reference.panes[query] == (panes.min(), panes.max())


@pytest.mark.parametrize("panes", [[LEAST, LAST_PANE], [LEAST], [LAST_PANE], [-1, 0]])
def test_panes_at_the_ends_of_time(tmp_path: Path, panes: list[int]) -> None:
    n = len(panes)
    writer = SegmentWriter(tmp_path / "s.seg", 2)
    writer.add("q", Groups(np.array(panes), {NUMBER: np.arange(n)}, {}, np.ones(n, np.int64), {}))
    writer.end_run({})
    writer.close()
    (block,) = Segment(tmp_path / "s.seg").blocks
    assert block.panes.tolist() == panes
    assert block.row_range(-(1 << 64), 1 << 64) == (0, n)
    assert [(start, stop) for _, start, stop in block.cover(-(1 << 64), 1 << 64)] == [(0, n)]
    for pane in panes:
        start, stop = block.row_range(pane, pane + 1)
        assert block.pane_numbers(start, stop).tolist() == [pane]


def test_reading_nothing_at_the_edge_of_a_page_spoils_no_page(tmp_path: Path) -> None:
    """A read of no values, as of an empty dictionary, must not be remembered as the page that begins there."""
    write(tmp_path / "s.seg", 3, [40_000])
    segment = Segment(tmp_path / "s.seg")
    (block,) = segment.blocks
    column = next(block.where(name) for name in block.shape.names if block.where(name).size == 8)
    edge = (column.at // PAGE + 1) * PAGE
    expected = segment.stored(column, (edge - column.at) // 8, (edge - column.at) // 8 + 5).tolist()
    fresh = Segment(tmp_path / "s.seg")
    assert len(fresh.stored(column._replace(at=edge, n=0))) == 0
    assert fresh.stored(column._replace(at=edge), 0, 5).tolist() == expected


def test_a_task_that_fails_leaves_no_file_open(tmp_path: Path) -> None:
    """A worker of the process engine goes on after a failed merge: what is left open there would stay so."""
    with pytest.raises(ValueError, match="broken"), SegmentWriter(tmp_path / "one", 32) as writer:
        raise ValueError("broken")
    assert writer._file.closed
