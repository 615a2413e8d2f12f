"""What partial groups cost: measured on groups that are what they are meant to be. No time is asserted."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import numpy as np

from penstock.runtime.profile import partials
from penstock.sharing.model.unit_costs import USUAL, PerRow

GROUPS = 4096


def trial(folder: Path, number: int) -> partials._Trial:
    return partials._Trial(folder, list(partials._queries())[number])


def test_every_record_makes_a_group(tmp_path: Path) -> None:
    for number, columns in ((0, 2), (1, 8)):
        one = trial(tmp_path / str(number), number)
        one._folder.mkdir()
        assert one.columns == columns
        full = partials._filled(one.relation, GROUPS, 0)
        assert full.count == GROUPS
        assert not any(values.any() for name, values in full.groups({}).components.items() if name == name.null)


def test_half_of_the_groups_of_a_segment_are_in_the_other(tmp_path: Path) -> None:
    one = trial(tmp_path, 1)
    merged = one._windows(one._stored(GROUPS))
    assert merged.count.sum() == GROUPS
    assert len(merged) == GROUPS * 3 // 4
    assert sorted(np.unique(merged.count)) == [1, 2]


def test_an_appending_leaf_takes_all_chunks_and_forgets_them(tmp_path: Path) -> None:
    assert partials._appended(trial(tmp_path, 0).relation) >= partials.LEAST


def test_rows_and_columns_are_told_apart() -> None:
    """By two queries whose costs are made up."""

    class Made:
        def __init__(self, columns: int) -> None:
            self.columns = columns

        def spent(self, groups: int) -> float:
            return 7_000.0 + groups * (20.0 + 3.0 * self.columns)

    found = partials._by_columns([Made(2), Made(8)], Made.spent)  # type: ignore[arg-type, list-item]
    assert abs(found.row - 20.0) < 1e-9
    assert abs(found.column - 3.0) < 1e-9


def test_no_cost_is_nothing() -> None:
    found = partials.measured_partials()
    numbers = [found.segment.row, found.segment.column, found.merge.row, found.merge.column]
    assert all(isfinite(n) and n > 0 for n in [*numbers, found.appended, found.finish, found.block])


def test_a_partial_group_is_written_and_merged() -> None:
    assert USUAL.partial(4) == USUAL.segment.of(4) + USUAL.merge.of(4)
    assert PerRow(10.0, 2.0).of(0) == 10.0
