"""What partial groups, roll-ups and results cost: measured on groups that are what they are meant to be. No time is
asserted."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import numpy as np
import pytest

from penstock.relations.relation import relation_of
from penstock.relations.uniting import union_of
from penstock.runtime.meter import FINISH, ROLL
from penstock.runtime.profile import partials, rollups, trials
from penstock.runtime.profile.trials import LEAST, Trial, asked, chunk_of, middle, resolved, timed
from penstock.sharing.model.unit_costs import USUAL, PerRow

GROUPS = 4096


def trial(folder: Path, keys: str, sums: str = "") -> Trial:
    return Trial(folder, resolved([asked("q", keys, sums)])[0])


@pytest.mark.parametrize(("keys", "sums", "columns"), [("a", "", 2), ("abcd", "efg", 8), ("h", "", 2)])
def test_every_record_makes_a_group(keys: str, sums: str, columns: int, tmp_path: Path) -> None:
    one = trial(tmp_path, keys, sums)
    assert one.columns == columns
    full = one.filled(GROUPS)
    assert full.count == GROUPS
    assert len(one.windows([one.written(full)[0]])) == GROUPS


def test_half_of_the_groups_of_a_segment_are_in_the_other(tmp_path: Path) -> None:
    one = trial(tmp_path, "abcd", "efg")
    merged = one.windows(one.stored(GROUPS))
    assert merged.count.sum() == GROUPS
    assert len(merged) == GROUPS * 3 // 4
    assert sorted(np.unique(merged.count)) == [1, 2]


def test_columns_have_as_many_values_as_they_should(tmp_path: Path) -> None:
    relation = trial(tmp_path, "abc").relation
    chunk, ranges = chunk_of(relation, GROUPS, 0, (1 << 30, 16, 4, *rollups.VALUES[3:]))
    assert chunk.words.shape[1] == GROUPS
    assert len(np.unique(chunk.words, axis=1).T) == GROUPS
    assert len(ranges) == len(relation.parts)


def test_leaves_that_append_and_that_grow_take_all(tmp_path: Path) -> None:
    assert partials._appended(trial(tmp_path, "ab", "g").relation) >= LEAST
    assert isfinite(partials._fresh(trial(tmp_path, "ab", "g").relation))


def test_the_middle_of_several_counts() -> None:
    found = iter([9, 1, 5, 1000, 3])
    assert middle(lambda: next(found)) == 5.0
    assert timed(lambda: None) >= 0


def test_rows_and_columns_are_told_apart() -> None:
    """By two queries whose costs are made up."""
    lines = [partials._line(lambda n, columns=columns: 7e3 + n * (20.0 + 3.0 * columns)) for columns in (2, 8)]  # type: ignore[misc]
    assert all(abs(line.begin - 7e3) < 1e-3 for line in lines)
    found = partials._by_columns((2, 8), [line.row for line in lines])
    assert abs(found.row - 20.0) < 1e-6
    assert abs(found.column - 3.0) < 1e-6


def test_rows_and_groups_are_told_apart() -> None:
    """By roll-ups whose costs are made up, with what each of them takes besides."""
    many, fewer = (
        [rollups.Again(5e4 + 3.0 * rows + 2.0 * columns * rows, rows, int(columns * rows)) for columns in (0.5, 2, 3)]
        for rows in (100_000, 8_000)
    )
    row, grouped = rollups.row_and_group(many, fewer)
    assert row == pytest.approx(3.0)
    assert grouped == pytest.approx(2.0)


def test_what_items_take_is_told_apart() -> None:
    """By three whose costs are made up."""

    def item(rows: int, queries: int, attributes: int) -> dict[str, float]:
        found = {"rolled": rows * queries, "filled": 2.5 * rows, "coded": rows * attributes, "rollups": queries}
        spent = 3.0 * rows * queries + 2.0 * 2.5 * rows + 9.0 * rows * attributes + 1e5 * queries + 4e4 * attributes
        return found | {"codings": attributes, ROLL: spent}

    found = rollups.of_items([item(100_000, 15, 6), item(8_000, 15, 6), item(8_000, 1, 5)], 3.0, 2.0)
    assert found == pytest.approx((9.0, 1e5, 4e4))


def test_overlapping_windows_have_all_groups_each(tmp_path: Path) -> None:
    one = trial(tmp_path, "a")
    merged = list[int]()
    with pytest.MonkeyPatch.context() as patched:
        real = trials.merge_windows
        patched.setattr(trials, "merge_windows", lambda *given: merged.append(len(real(*given))))
        one.overlapping(GROUPS)
    assert set(merged) == {GROUPS * 3 // 4}  # half of the groups of a segment are in the other


def test_windows_are_closed_as_in_a_run(tmp_path: Path) -> None:
    pairs = resolved([asked("ab", "ab", "g"), asked("bc", "bc", "g"), asked("de", "de", "g")])
    union = union_of([relation_of(query) for query in pairs])
    stored = rollups._Stored(tmp_path, pairs[0], union, GROUPS)
    spent = stored.closed(pairs)
    assert all(spent[part] > 0 for part in (ROLL, FINISH))
    assert (spent["rollups"], spent["closed"], spent["codings"], spent["rolled"]) == (3, 3, 5, 3 * GROUPS)
    written = sorted(path.parent.parent.name for path in (tmp_path / "results").glob("*/.penstock/*"))
    assert set(written) == {"ab", "bc", "de"}
    made = stored.rolling()
    assert all(made.groups(relation_of(query)).count.sum() == GROUPS for query in pairs)


def test_no_cost_is_nothing(tmp_path: Path) -> None:
    found, made = partials.measured_partials(tmp_path), rollups.measured_roll_ups(tmp_path)
    every = [*vars(found).values(), *vars(made).values()]
    rows = [one for one in every if isinstance(one, PerRow)]
    numbers = [one for one in every if not isinstance(one, PerRow)]
    assert all(isfinite(n) and n > 0 for n in [*numbers, *(n for one in rows for n in (one.row, one.column))])


def test_a_partial_group_is_written_and_merged() -> None:
    assert USUAL.partial(4) == USUAL.segment.of(4) + USUAL.merge.of(4)
    assert PerRow(10.0, 2.0).of(0) == 10.0
