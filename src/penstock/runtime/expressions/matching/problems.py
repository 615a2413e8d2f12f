"""What is wrong with the rows of a table, in words: asked before a run, so that no row is left out silently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.kernels import inet
from penstock.logical.expressions import Bound, Literal, Match
from penstock.logical.render import render
from penstock.logical.types import Kind
from penstock.runtime.expressions.evaluate import Scope, evaluate, truth
from penstock.runtime.expressions.matching.columns import table_scope
from penstock.runtime.expressions.matching.ranges import LOWER
from penstock.runtime.expressions.operands import Addresses, both, ordering, take


def problem_of(match: Match, data: pa.Table) -> str | None:
    """The first row whose lower bound is above its upper bound; None if there is none."""
    if match.longest and match.bounds and match.bounds[0].bound.type.kind is Kind.STRING:
        return "a range of texts has no length, so none of them is the shortest"
    scope = table_scope(data)
    used = None if match.where is None else truth(match.where, scope)
    lower = [bound for bound in match.bounds if bound.operator in LOWER]
    found = (_inverted(low, high, scope, used) for low in lower for high in match.bounds if high not in lower)
    rows = [one for one in found if one is not None]
    if not rows:
        return None
    row, low, high = min(rows, key=lambda one: one[0])
    return f"row {row + 1} of the table has {_told(low, scope, row)} above {_told(high, scope, row)}"


def _inverted(low: Bound, high: Bound, scope: Scope, used: Any) -> tuple[int, Bound, Bound] | None:
    one, other = evaluate(low.bound, scope), evaluate(high.bound, scope)
    below, _ = ordering(other.values, one.values)
    there = both(both(one.valid, other.valid), used)
    rows = np.flatnonzero(below if there is None else below & there)
    return (int(rows[0]), low, high) if len(rows) else None


def _told(bound: Bound, scope: Scope, row: int) -> str:
    """What a bound is, and its value as SQL writes it; an address as it is printed."""
    values, name = take(evaluate(bound.bound, scope), np.array([row])).values, render(bound.bound)
    if isinstance(values, Addresses):
        start, data = inet.to_text(values.version, values.high, values.low)
        return f"{name} {bytes(data[: start[1]]).decode()}"
    value = values[0].as_py() if isinstance(values, pa.Array) else values[0].item()
    return f"{name} {render(Literal(value, bound.bound.type))}"
