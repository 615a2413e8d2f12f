"""The paper's operator for Python: a join query, a plan, events in, AS_out out (aggregation-join, Sec. 4 to 6.1).

    events ──► running.process: AS update, window update, window join or AS join, AS update of AS_out ──► groups()

A plan says for each stream whether an EA operator stands on it; `EAP10` has one on S_1, and none at all is `LAP`.
All streams join on one attribute. Every aggregation set keeps COUNT(*), whatever Rule 1 says: a group leaves when its
count is 0. AVG is SUM and COUNT, put together when it is shown. Numbers are 64-bit integers throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.join import layout as at
from experiments.join.running import process

Words = NDArray[np.int64]
Plan = tuple[bool, ...]
BUCKETS = 1021  # B: the most that a hash table may have (Fig. 4)
FEW_GROUPS = 1024  # room for AS_out at first
LINES, LINE_WORDS = 64, 8  # cache lines of a page, words of a line
KINDS = {"sum": at.SUM, "avg": at.SUM, "min": at.MIN, "max": at.MAX}


@dataclass(frozen=True)
class JoinedStream:
    """One stream: records that its window has at most, and how many values its G_i and J_i have (g_i and 1/σ_i)."""

    window: int
    groups: int
    keys: int


@dataclass(frozen=True)
class Function:
    """`sum`, `avg`, `min`, `max` of a stream's A_i, by the stream's number; `count` is COUNT(*) of the join."""

    name: str
    stream: int = 0


@dataclass(frozen=True)
class JoinQuery:
    """SELECT G_1, …, G_m, functions FROM S_1, …, S_m WHERE J_1 = … = J_m GROUP BY G_1, …, G_m."""

    streams: tuple[JoinedStream, ...]
    functions: tuple[Function, ...]
    hashed: bool = True
    buckets: int = BUCKETS
    out_buckets: int = BUCKETS  # of AS_out's table

    @property
    def plans(self) -> tuple[Plan, ...]:
        """All 2^m, the late one first."""
        return tuple(product((False, True), repeat=len(self.streams)))

    @property
    def kept(self) -> tuple[tuple[int, int], ...]:
        """Stream and kind of what aggregation sets keep beside COUNT(*)."""
        found = [(function.stream, KINDS[function.name]) for function in self.functions if function.name in KINDS]
        return tuple(dict.fromkeys(found))


def plan_name(plan: Plan) -> str:
    """
    >>> plan_name((True, False)), plan_name((False, False, False))
    ('EAP10', 'LAP')
    """
    return f"EAP{''.join('1' if early else '0' for early in plan)}" if any(plan) else "LAP"


class AggregationJoin:
    """A plan at work. Windows are first in, first out: a decrement takes the oldest record of its stream."""

    def __init__(self, query: JoinQuery, plan: Plan, places: np.random.Generator | None = None) -> None:
        """`places` draws where arrays lie against each other, which can be a fifth of the time: runs that are to be
        averaged draw it anew."""
        self.query, self.plan = query, plan
        m, kept, columns = len(query.streams), query.kept, at.VALUES + len(query.kept)
        self._aggregates = np.array(kept, np.int64).reshape(len(kept), 2)
        self._streams = _registers(query, plan)
        room = int(self._streams[:, at.ROOM].sum())
        self._windows = _placed(room, at.WINDOW_COLUMNS, places)
        self._sets = _placed(room if any(plan) else 1, columns, places)
        self._nodes = np.zeros((room if self._streams[:, at.ORDERED].any() else 1, at.NODE_COLUMNS), np.int64)
        self._heads = _placed(int(self._streams[:, at.BUCKETS].sum()), at.HEAD_COLUMNS, places)
        self._bound = prod(min(one.window, one.groups) for one in query.streams)
        self._outs = _placed(min(self._bound, FEW_GROUPS), at.GROUPS + m + len(kept), places)
        self._tops = _placed(min(query.streams[0].groups, query.out_buckets), 1, places).reshape(-1)
        self._registers = np.full(at.REGISTERS, at.NONE, np.int64)
        self._registers[[at.OUT_REACHED, at.OUT_SIZE, at.NODE_REACHED]] = 0
        self._levels = _placed(m, at.LEVEL_COLUMNS, places)

    def run(self, events: Words) -> None:
        """Take in these events, in their order."""
        done = self._from(events, 0)
        while done < len(events):
            self._grow()
            done = self._from(events, done)

    def _from(self, events: Words, start: int) -> int:
        return int(
            process(
                self._streams, self._windows, self._sets, self._nodes, self._heads, self._outs, self._tops,
                self._registers, self._levels, self._aggregates, events, start, self._bound, int(self.query.hashed),
            )
        )  # fmt: skip

    def _grow(self) -> None:
        """Twice the room for AS_out."""
        more = min(len(self._outs), self._bound - len(self._outs))
        self._outs = np.concatenate([self._outs, np.zeros((more, self._outs.shape[1]), np.int64)])

    # -- what there is now

    @property
    def sizes(self) -> tuple[int, ...]:
        """Records of the windows."""
        return tuple(int(size) for size in self._streams[:, at.SIZE])

    @property
    def set_sizes(self) -> tuple[int, ...]:
        """Groups of the aggregation sets: α_i of streams with an EA operator."""
        return tuple(int(size) for size in self._streams[:, at.SETS_SIZE])

    @property
    def out_size(self) -> int:
        """Groups of AS_out: α."""
        return int(self._registers[at.OUT_SIZE])

    def groups(self) -> dict[tuple[int, ...], tuple[Any, ...]]:
        """AS_out: the values of the query's functions by group."""
        m = len(self.query.streams)
        rows = self._outs[: self._registers[at.OUT_REACHED]]
        rows = rows[rows[:, at.OUT_COUNT] != 0]
        shown = [self._shown(rows, function) for function in self.query.functions]
        keys = map(tuple, rows[:, at.GROUPS : at.GROUPS + m].tolist())
        return dict(zip(keys, zip(*shown, strict=True), strict=True))

    def _shown(self, rows: Words, function: Function) -> list[Any]:
        count = rows[:, at.OUT_COUNT]
        if function.name == "count":
            return list(count.tolist())
        column = self.query.kept.index((function.stream, KINDS[function.name]))
        values = rows[:, at.GROUPS + len(self.query.streams) + column]
        return list((values / count if function.name == "avg" else values).tolist())


def _registers(query: JoinQuery, plan: Plan) -> Words:
    """Where each stream's rows and buckets stand."""
    made = np.zeros((len(query.streams), at.STREAM_COLUMNS), np.int64)
    made[:, at.ROOM] = [stream.window for stream in query.streams]
    made[:, at.BUCKETS] = [min(stream.keys, query.buckets) for stream in query.streams]
    made[:, at.EARLY] = plan
    made[:, at.FIRST] = made[:, at.SETS] = _starts(made[:, at.ROOM])
    made[:, at.TABLE] = _starts(made[:, at.BUCKETS])
    made[:, at.SETS_FREE] = at.NONE
    for stream, kind in query.kept:
        if kind != at.SUM and plan[stream]:
            made[stream, at.ORDERED] = 1
    return made


def _placed(rows: int, columns: int, places: np.random.Generator | None) -> Words:
    """An array of NONE that begins at some line of a page."""
    shift = 0 if places is None else int(places.integers(0, LINES)) * LINE_WORDS
    return np.full(rows * columns + shift, at.NONE, np.int64)[shift:].reshape(rows, columns)


def _starts(sizes: Sequence[int] | Words) -> Words:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]])
