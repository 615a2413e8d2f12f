"""Which relations may stand in one, and windows made of panes that are shorter than theirs."""

from __future__ import annotations

import random

import pytest

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.logical.window import ROWS, TIME, FinerWindow, Panes, Window
from penstock.relations.relation import APPEND
from penstock.relations.storing import stored
from penstock.relations.uniting import Union, unitable, united

STREAM = "CREATE STREAM s (ts TIMESTAMP, a INT, b INT, x INT) FROM 'parquet:in' WATERMARK ts DELAY '0 s';"


def app_of(*selects: str) -> QuerySet:
    text = [STREAM, *(f"CREATE QUERY q{number} AS {one};" for number, one in enumerate(selects))]
    return resolve_app("\n".join(text), "app.sql", lambda uri, options: ())


def together(*selects: str) -> list[tuple[str, ...]]:
    """Queries whose relations may stand in one."""
    kept = stored(app_of(*selects), "s")
    return [tuple(kept.labels[one.name] for one in same) for same in unitable(kept)]


def counted(columns: str, window: str, where: str = "") -> str:
    return f"SELECT {columns}, count(*) AS n FROM s [{window}] {where} GROUP BY {columns}"


def test_windows_that_overlap_and_longer_ones_stand_in_one() -> None:
    assert together(counted("a", "RANGE '10 s'"), counted("b", "RANGE '1 minute' SLIDE '10 s'")) == [("q0", "q1")]
    assert together(counted("a", "RANGE '5 minutes'"), counted("b", "RANGE '10 s'")) == [("q0", "q1")]
    assert together(counted("a", "RANGE '5 minutes'"), counted("a", "RANGE '10 s'")) == [("q0", "q1")]


def test_panes_that_are_not_made_of_each_other_do_not() -> None:
    """Any of those that may stand in one may do so without the others."""
    selects = [counted("a", f"RANGE '{n} s'") for n in (60, 90, 10)]
    assert together(*selects) == [("q1", "q2")]
    assert together(counted("a", "RANGE '15 s' SLIDE '10 s'"), counted("b", "RANGE '10 s'")) == []
    landmark = [f"{counted(column, 'WINDOW UNTIL NOW')} EVERY 10 SECONDS" for column in "ab"]
    assert together(*landmark) == []
    assert together(counted("a", "ROWS 10"), counted("b", "ROWS 100")) == []
    assert together(counted("a", "RANGE '10 s'", "WHERE x > 1"), counted("b", "RANGE '10 s'")) == []


def test_a_union_has_the_shortest_panes_and_tells_how_far_windows_reach() -> None:
    kept = stored(app_of(counted("a", "RANGE '5 minutes'"), counted("b", "RANGE '20 s' SLIDE '10 s'")), "s")
    (parts,) = unitable(kept)
    for table, reach in (("exact", 30), (APPEND, 0)):
        found = united(kept, [Union(tuple(one.name for one in parts), table)])
        (whole,) = found.relations
        assert whole.panes == Panes(TIME, 10_000_000)
        assert found.reach[whole.name] == reach


@pytest.mark.parametrize("seed", range(40))
def test_a_window_over_finer_panes_is_the_same_window(seed: int) -> None:
    rng = random.Random(seed)
    pane, times = rng.randint(1, 9), rng.randint(1, 6)
    slide = pane * times
    window = Window(slide * rng.randint(1, 4), slide)
    finer = window.over(Panes(TIME, pane))
    assert (finer == window) == (times == 1)
    assert finer.tumbling == window.tumbling
    assert finer.single == (window.tumbling and times == 1)
    for number in range(-3, 4):
        panes = range(finer.first_pane(number), finer.beyond_pane(number))
        assert len(panes) == finer.reach
        assert finer.panes.start(panes[0]) == number * slide
        assert finer.panes.start(panes[-1] + 1) == window.end(number)
    for number in range(-20, 20):
        holding = [k for k in range(-60, 60) if finer.first_pane(k) <= number < finer.beyond_pane(k)]
        assert (finer.first_window(number), finer.last_window(number)) == (holding[0], holding[-1])
    assert finer.first_open(17) == window.first_open(17)


def test_what_cannot_be_made_of_other_panes_says_so() -> None:
    for window, panes in (
        (Window(10, 10), Panes(TIME, 3)),
        (Window(15, 10), Panes(TIME, 5)),
        (Window(None, 10), Panes(TIME, 5)),
        (Window(10, 10), Panes(ROWS, 5)),
    ):
        with pytest.raises(ValueError, match="cannot be made of"):
            window.over(panes)
    assert isinstance(Window(10, 10).over(Panes(TIME, 5)), FinerWindow)
