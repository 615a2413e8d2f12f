"""The index of a segment: what a writer said is what a reader finds."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.relations.component import component_of
from penstock.state.segments.index import (
    FLOATS,
    HEAD,
    INLINE,
    LEVEL,
    ROWS,
    RUN,
    SHAPE,
    SLOTTED,
    BlockShape,
    Index,
    IndexWriter,
    StoredColumn,
)

GREATEST = (1 << 63) - 1
ONE = BlockShape("é", ("count", "value:a"), ())
TWO = BlockShape("b", ("count", "value:a", "sum x 0", "sum x 1"), ((State("sum", "x"), 2),))


def columns(shape: BlockShape, seed: int) -> list[StoredColumn]:
    """Any numbers will do."""
    dice = np.random.default_rng(seed)
    sizes = dice.choice([0, 1, 2, 4, 8, FLOATS], 3 + len(shape.names))
    return [StoredColumn(*dice.integers(-GREATEST, GREATEST, 2).tolist(), int(size), -5, GREATEST) for size in sizes]


def test_blocks_come_back() -> None:
    writer = IndexWriter()
    said = [(ONE, 10, 0, False), (TWO, 7, 0, True), (TWO, 3, 1, False), (TWO, 2, 2, False), (ONE, GREATEST, 0, True)]
    for seed, (shape, rows, level, slotted) in enumerate(said[:4]):
        writer.add(shape, rows, level, slotted, columns(shape, seed))
    writer.dictionaries.append({component_of("value:é"): (StoredColumn(1, 2, 4), StoredColumn(3, 4, 1))})
    writer.add(*said[4], columns(ONE, 4))
    pages = [0, 1, (1 << 64) - 1]
    index = Index(writer.encode(17, pages))
    assert index.slots == 17
    assert index.pages.tolist() == pages
    assert index.dictionaries == [{component_of("value:é"): (StoredColumn(1, 2, 4), StoredColumn(3, 4, 1))}]
    assert [len(records) for records in index.blocks()] == [1, 3, 1]
    records = [record for block in index.blocks() for record in block]
    for seed, (record, (shape, rows, level, slotted)) in enumerate(zip(records, said, strict=True)):
        head = index.records[record : record + HEAD]
        assert index.shapes[head[SHAPE]] == shape
        assert head[[RUN, ROWS, LEVEL, SLOTTED]].tolist() == [int(seed == 4), rows, level, int(slotted)]
        stored = index.records[record + HEAD :][: 5 * (3 + len(shape.names))].reshape(-1, 5)
        assert [StoredColumn(*column) for column in stored.tolist()] == columns(shape, seed)


def test_shapes_are_said_once() -> None:
    writer = IndexWriter()
    for _ in range(5):
        writer.add(BlockShape("q", ("count",), ()), 1, 0, False, columns(BlockShape("q", ("count",), ()), 0))
    index = Index(writer.encode(1, []))
    assert index.shapes == [BlockShape("q", ("count",), ())]
    assert len(index.blocks()) == 5


@pytest.mark.parametrize("values", [[], [5], [-(1 << 63), 0, GREATEST]])
def test_short_arrays_stand_in_the_index(values: list[int]) -> None:
    writer = IndexWriter()
    writer.inline(np.arange(3))
    column = writer.inline(np.array(values, np.int64))
    assert column == StoredColumn(3, len(values), INLINE, min(values, default=0), max(values, default=0))
    index = Index(writer.encode(1, []))
    assert index.numbers[column.at : column.at + column.n].tolist() == values


def test_places_and_states_of_a_shape() -> None:
    assert TWO.places == {"count": 3, "value:a": 4, "sum x 0": 5, "sum x 1": 6}
    assert TWO.state_columns == {State("sum", "x"): ("sum x 0", "sum x 1")}
