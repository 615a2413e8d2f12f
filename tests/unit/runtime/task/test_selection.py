"""Fates of records: what is malformed, filtered, late or exact, for one taker and for several of one relation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.logical.expressions import Column, Comparison, Expression, Literal
from penstock.logical.types import BIGINT
from penstock.logical.window import Window
from penstock.relations.relation import Choice
from penstock.runtime.epoch import Epoch
from penstock.runtime.expressions.evaluate import Operand, Scope
from penstock.runtime.task import selection
from penstock.runtime.task.arrow import Ingested
from penstock.runtime.task.columns import Records
from penstock.runtime.task.selection import Ledger, Selection, Taker, sieves
from penstock.state.account import Entry

VALUE = Column("v", BIGINT)
NONE = np.empty(0, np.uint8)
SMALL, LARGE = (Comparison(operator, VALUE, Literal(5, BIGINT)) for operator in ("<", ">="))
WINDOW = Window(10, 10)


def records(times: list[int], values: list[int], bad: list[bool] | None = None, first: int | None = 0) -> Records:
    numbers, column = np.array(times), Ingested(np.array(values), NONE, bad=None if bad is None else np.array(bad))
    operands: dict[Any, Operand] = {VALUE: Operand(column.numbers)}
    faults = [] if column.bad is None else [("v is bad", column.bad)]
    scope = Scope(operands.__getitem__, len(times))
    return Records({"v": column}, numbers, np.arange(len(times)) + 100, None, None, faults, first, scope, {})


def taker(name: str, where: Expression | None = None, window: Window = WINDOW, booked: bool = True) -> Taker:
    gap = (window.slide, window.length) if window.gaps else None
    return Taker(name, Choice(where, frozenset("v"), gap), window, window.axis, name, booked)


def test_each_record_has_one_fate() -> None:
    judged = Selection((taker("q", where=SMALL),), Epoch(1, watermark=20, first=0))
    chunk = records([5, 25, 25, 25, 5], [1, 2, 9, 3, 9], [False, False, False, True, False])
    fates, ledger = judged.judge(chunk), Ledger(["q"])
    ledger.book(chunk, fates)
    expected = Entry(input=5, exact=1, late=1, filtered=2, malformed=1)
    assert ledger.queries["q"] == ledger.stream == expected
    assert np.flatnonzero(fates.taken(["q"])).tolist() == [1]
    assert ledger.reasons == {"v is bad": 1}
    assert ledger.places == {"v is bad": [103]}


def test_a_relation_takes_what_any_of_its_takers_takes() -> None:
    takers = (taker("small", where=SMALL), taker("large", where=LARGE), taker("late", window=Window(100, 10)))
    fates = Selection(takers, Epoch(1, watermark=20, first=0)).judge(records([25, 25, 15], [1, 9, 9]))
    assert np.flatnonzero(fates.taken(["small"])).tolist() == [0]
    assert np.flatnonzero(fates.taken(["small", "large"])).tolist() == [0, 1]
    assert fates.taken(["small", "late"]) is None
    assert fates.taken(["large", "small"]) is fates.taken(["small", "large"])
    assert fates.stream.entry.exact == 3


def test_takers_that_judge_alike_share_a_fate_and_each_where_is_evaluated_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated = []

    def counting(where: Any, scope: Scope) -> Any:
        evaluated.append(where)
        return np.array(scope.lookup(VALUE).values) < 5

    monkeypatch.setattr(selection, "truth", counting)
    takers = (taker("a", where=SMALL), taker("b", where=SMALL), taker("c", where=SMALL, window=Window(7, 10)))
    fates = Selection(takers, Epoch(0)).judge(records([1, 2], [1, 9]))
    assert fates.of["a"] is fates.of["b"] is not fates.of["c"]
    assert evaluated == [SMALL]


def test_what_is_not_booked_does_not_show_in_the_account() -> None:
    takers = (taker("q", where=SMALL), Taker("#bounds", Choice(), None, "time", "#bounds", booked=False))
    chunk, ledger = records([1, 2], [1, 9]), Ledger(["q"])
    fates = Selection(takers, Epoch(0)).judge(chunk)
    ledger.book(chunk, fates)
    assert fates.taken(["#bounds"]) is None
    assert (ledger.stream.exact, ledger.stream.filtered) == (1, 1)
    assert list(ledger.queries) == ["q"]


def test_landmark_windows_begin_with_the_first_record() -> None:
    judged = Selection((taker("q", window=Window(None, 10)),), Epoch(0))
    assert judged.judge(records([25, 12, 31], [1, 1, 1], first=25)).of["q"].entry.late == 1
    assert judged.judge(records([5, 21], [1, 1], first=25)).of["q"].entry.late == 1


def test_sieves_are_shared_by_relations_whose_takers_choose_alike() -> None:
    takers = {
        "one": (taker("a", where=SMALL), taker("b")),
        "two": (taker("c", where=SMALL), taker("d")),
        "three": (taker("e", where=SMALL),),
    }
    assert sieves(takers, Epoch(0)) == {"one": "one", "two": "one", "three": "three"}
    assert sieves(takers, Epoch(0, origins={"d": (5, 5)})) == {"one": "one", "two": "two", "three": "three"}
