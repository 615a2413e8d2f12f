"""Makes the classes of a table's rows: once for each match, by every process that needs them.

    rows that pass `where`, without NULLs ──► codes of their equality columns (`keys`)
                                          └─► elementary intervals of their ranges (`ranges`) ──► sets of rows

Intervals with the same rows are one class: of `longest`, a network around many smaller ones is one class, not one for
each gap. Numbers of classes follow from the table's content and the match alone: they are the same in every task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import RunError
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.lookups.cover import cover_shortest, list_covers
from penstock.logical.expressions import Expression, Match
from penstock.logical.types import DOUBLE
from penstock.runtime.expressions.evaluate import Scope, evaluate, truth
from penstock.runtime.expressions.matching.classes import Classes, Intervals, compared
from penstock.runtime.expressions.matching.columns import table_scope
from penstock.runtime.expressions.matching.keys import Keys
from penstock.runtime.expressions.matching.ranges import Ranges, lengths
from penstock.runtime.expressions.operands import Array, take

MOST_MATCHES = 1 << 25  # rows of all intervals together
NO_ROWS = np.empty(0, np.int64)


def make_classes(match: Match, data: pa.Table) -> Classes:
    """The classes of a table's rows."""
    pairs = [*match.equals, *((match.value, bound.bound) for bound in match.bounds if match.value is not None)]
    double = [of is not None and DOUBLE in (of.type, column.type) for of, column in pairs]
    used, columns = _used(match, [column for _, column in pairs], table_scope(data))
    columns = [compared(values, floating) for values, floating in zip(columns, double, strict=True)]
    equal = len(match.equals)
    doubles = (*double[:equal], *([any(double[equal:])] if match.value is not None else ()))
    keys = Keys(columns[:equal]) if equal and len(used) else None
    if not len(used):
        return Classes(np.zeros(1, np.int64), used, data)
    if match.value is None:
        starts, rows = _by_code(keys, len(used))
        return Classes(starts, used[rows], data, keys, None, doubles)
    bounds = [(bound.operator, values) for bound, values in zip(match.bounds, columns[equal:], strict=True)]
    # The longest prefix that holds an address is its owner, whether it passes or not.
    passing = truth(match.where, table_scope(data))[used] if match.longest and match.where is not None else None
    intervals, starts, rows = _by_interval(match, keys, bounds, passing)
    return Classes(starts, used[rows], data, keys, intervals, doubles)


def _used(match: Match, columns: Sequence[Expression], scope: Scope) -> tuple[Array, list[Any]]:
    """Rows that may belong to a record, and what they have: they pass the table's own conditions, and have no NULLs. Of
    the longest prefix it is asked later whether it passes."""
    usable = np.ones(scope.rows, bool) if match.where is None or match.longest else truth(match.where, scope)
    operands = [evaluate(column, scope) for column in columns]
    for operand in operands:
        usable = usable if operand.valid is None else usable & operand.valid
    rows = np.flatnonzero(usable)
    return rows, [take(operand, rows).values for operand in operands]


def _by_code(keys: Keys | None, rows: int) -> tuple[Array, Array]:
    """Where there is no range, a code is a class."""
    if keys is None:
        return np.array([0, rows]), np.arange(rows)
    order = np.argsort(keys.codes, kind="stable")
    return np.searchsorted(keys.codes[order], np.arange(keys.count + 1)), order


def _by_interval(
    match: Match, keys: Keys | None, bounds: Sequence[tuple[str, Any]], passing: Array | None
) -> tuple[Intervals, Array, Array]:
    """The class of each interval, and its rows: those that pass. A row whose range is empty is in none."""
    ranges = Ranges(bounds)
    held = np.flatnonzero(ranges.begin < ranges.end)
    codes = np.zeros(len(held), np.int64) if keys is None else keys.codes[held]
    count = ranges.places.count
    edges = np.concatenate([codes * (count + 2) + ranges.begin[held], codes * (count + 2) + ranges.end[held]])
    cuts, at = np.unique(edges, return_inverse=True)
    begin, end = np.split(at, 2)
    by_length = lengths(bounds)[held] if match.longest else None
    starts, rows = _covers(match, begin, end, len(cuts), by_length)
    if passing is not None:
        left = passing[held[rows]]
        starts, rows = np.concatenate([[0], np.cumsum(left)])[starts], rows[left]
    classes, starts, rows = _sets(starts, rows)
    if keys is None:
        place = np.searchsorted(cuts, np.arange(count + 1), side="right") - 1
        return Intervals(ranges.places, np.append(classes, -1)[place]), starts, held[rows]
    firsts = np.searchsorted(cuts, np.arange(keys.count + 1) * (count + 2))
    return Intervals(ranges.places, classes, firsts, cuts % (count + 2)), starts, held[rows]


def _covers(match: Match, begin: Array, end: Array, count: int, by_length: Array | None) -> tuple[Array, Array]:
    """The rows of each interval, one list after the other, and where each begins."""
    if by_length is not None:
        return _shortest(match, begin, end, count, by_length)
    edges = np.bincount(begin, minlength=count) - np.bincount(end, minlength=count)
    starts = np.concatenate([[0], np.cumsum(np.cumsum(edges))])
    if starts[-1] > MOST_MATCHES:
        raise _too_many(match)
    rows = np.empty(starts[-1], np.int64)
    list_covers(begin, end, starts[:-1].copy(), rows)
    return starts, rows


def _shortest(match: Match, begin: Array, end: Array, count: int, by_length: Array) -> tuple[Array, Array]:
    """The same of the shortest ranges alone: counted first, then listed."""
    order = np.argsort(by_length, kind="stable")

    def cover(place: Array, rows: Array) -> int:
        bare, fresh = np.arange(count + 1), np.zeros(count, np.uint8)
        painted = np.empty(count, np.int64)
        return int(cover_shortest(order, by_length, begin, end, MOST_MATCHES, bare, fresh, painted, place, rows))

    counts = np.zeros(count, np.int64)
    if cover(counts, NO_ROWS) < 0:
        raise _too_many(match)
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = np.empty(starts[-1], np.int64)
    if len(rows):
        cover(starts[:-1].copy(), rows)
    return starts, rows


def _too_many(match: Match) -> RunError:
    return RunError(
        f"ranges of table '{match.table}' overlap too much: its intervals have more than {MOST_MATCHES} rows together",
        "WITH (match = 'longest') takes the shortest range of each value only; or leave out rows that hold many others",
    )


def _sets(starts: Array, rows: Array) -> tuple[Array, Array, Array]:
    """Number the different sets of rows: the number of each list (−1 of empty ones), where the rows of each number
    begin, and these rows."""
    some = starts[1:] > starts[:-1]
    classes = np.full(len(some), -1, np.int64)
    if len(rows) == some.sum():  # no list has two rows
        found, classes[some] = np.unique(rows, return_inverse=True)
        return classes, np.arange(len(found) + 1), found
    lists = Dictionary()
    classes[some] = lists.intern(np.append(starts[:-1][some], len(rows)) * 4, rows.astype(np.int32).view(np.uint8))
    return classes, lists.offsets // 4, lists.data.view(np.int32).astype(np.int64)
