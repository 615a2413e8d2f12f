"""What an app of joins must give: rows, accounts by alias, windows; for all its queries.

    streams ──► course (times, batches, WM) ─┐
    results of earlier queries ──► course ───┴─► per side: stay, values, verdicts ──► bags ──► answer
                                                                                               └──► results

Queries are taken in order, each after those whose results it reads.  Everything is evaluated in full at every instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.logical.types import STRING, TIMESTAMP, Kind
from penstock.testing.oracle.columns import Flags, Numbers
from penstock.testing.oracle.expected import ExpectedAccount, Verdict, Verdicts
from penstock.testing.oracle.joins.answers import Inputs, answer
from penstock.testing.oracle.joins.bags import Stay, bag, candidates, stay
from penstock.testing.oracle.joins.sides import Values, values_of, verdicts
from penstock.testing.oracle.joins.spec import LANDMARK, RANGE, AppSpec, FieldSpec, JoinSpec, RunLog, Side
from penstock.testing.oracle.joins.tables import matches
from penstock.testing.oracle.joins.watermarks import (
    Course,
    StreamCourse,
    closed_before,
    evaluated_in,
    reached,
    results_course,
    stream_course,
)


@dataclass(frozen=True)
class ExpectedJoin:
    """Of one query: rows as in its sink, what became of the records of each side, and the account of every window that
    exists (start, end, rows, exact).  `arrived` is the batch in which each row must come."""

    rows: pa.Table
    verdicts: Mapping[str, Verdicts]
    windows: list[dict[str, int]]
    arrived: Numbers

    @property
    def accounts(self) -> dict[str, ExpectedAccount]:
        return {alias: account_of(found) for alias, found in self.verdicts.items()}


@dataclass(frozen=True)
class ExpectedApp:
    """By the names of queries (hidden ones, too) and streams."""

    queries: Mapping[str, ExpectedJoin]
    streams: Mapping[str, ExpectedAccount]


@dataclass
class World:
    """What is known so far: data and course by the name of a stream or query. `unread` are records that a run did not
    read, by stream; whose, it says with the oracle of promised delays."""

    app: AppSpec
    log: RunLog
    data: dict[str, pa.Table]
    streams: dict[str, StreamCourse]
    courses: dict[str, Course]
    fields: dict[str, tuple[FieldSpec, ...]]
    found: dict[str, ExpectedJoin] = field(default_factory=dict)
    unread: Mapping[str, Flags] = field(default_factory=dict)


@dataclass(frozen=True)
class Held:
    """All that a query's rows follow from."""

    query: JoinSpec
    marks: Numbers
    stays: Mapping[str, Stay]
    verdicts: Mapping[str, Verdicts]
    inputs: Inputs
    instants: Numbers
    starts: Numbers


def expect_joins(app: AppSpec, data: Mapping[str, pa.Table], log: RunLog) -> ExpectedApp:
    """`data` are the streams as they stand in their files, by name.

    Raises RunError where an integer sum does not fit BIGINT: the run must end with a message.
    """
    world = begin(app, data, log)
    for query in app.queries:
        world.found[query.name] = _answered(hold(world, query))
        _publish(world, query)
    return ExpectedApp(world.found, {stream.name: stream_account(world, stream.name) for stream in app.streams})


def inputs_of(app: AppSpec, data: Mapping[str, pa.Table], log: RunLog) -> Iterator[tuple[JoinSpec, Inputs]]:
    """What every query is answered from; only those that others read are answered."""
    world = begin(app, data, log)
    read = {side.source for query in app.queries for side in query.streams}
    for query in app.queries:
        held = hold(world, query)
        yield query, held.inputs
        if query.name in read:
            world.found[query.name] = _answered(held)
            _publish(world, query)


def begin(app: AppSpec, data: Mapping[str, pa.Table], log: RunLog) -> World:
    streams = {stream.name: stream_course(stream, data[stream.name], log) for stream in app.streams}
    fields = {stream.name: stream.fields for stream in app.streams}
    return World(app, log, dict(data), streams, dict(streams), fields)


def hold(world: World, query: JoinSpec) -> Held:
    marks = reached(world.streams, sorted(world.app.roots(query)), world.log)
    stays, values = _sides(world, query, marks)
    named = [(t.alias, t.table) for t in query.tables] + [(a.alias, a.table) for a in query.asks if a.side is None]
    tables = {alias: _table_values(world.app, query, alias, name) for alias, name in named}
    found = {
        table.alias: matches(table, world.app.table(table.table).longest, values[table.to].table, tables[table.alias])
        for table in query.tables
    }
    judged = {s.alias: verdicts(query, s.alias, values[s.alias], stays[s.alias], found, tables) for s in query.streams}
    for side in query.streams:
        judged[side.alias][world.unread.get(side.source, [])] = Verdict.TRIAGED
    bags, numbers = _bags(query, stays, values, judged)
    instants = query.offset + numbers * query.slide
    return Held(query, marks, stays, judged, Inputs(bags, tables, found), instants, _starts(query, stays, instants))


def _answered(held: Held) -> ExpectedJoin:
    rows = answer(held.query, held.inputs, held.instants, held.starts)
    emitted = np.asarray(rows.column("instant").to_numpy(), np.int64)
    windows = windows_of(held.inputs.bags, held.instants, held.starts, emitted)
    return ExpectedJoin(rows.drop_columns(["instant"]), held.verdicts, windows, evaluated_in(held.marks, emitted))


def _sides(world: World, query: JoinSpec, marks: Numbers) -> tuple[dict[str, Stay], dict[str, Values]]:
    stays, values = {}, {}
    for side in query.streams:
        course = world.courses[side.source]
        stays[side.alias] = stay(query, side.window, course, closed_before(marks, course.arrived))
        values[side.alias] = values_of(world.data[side.source], world.fields[side.source], side.alias, query.uses)
    return stays, values


def _table_values(app: AppSpec, query: JoinSpec, alias: str, name: str) -> pa.Table:
    table = app.table(name)
    read = values_of(table.data, table.fields, alias, query.uses)
    if not read.fits.all():
        raise ValueError(f"table '{name}' has values that do not fit")
    return read.table


def _bags(
    query: JoinSpec, stays: Mapping[str, Stay], values: Mapping[str, Values], judged: Mapping[str, Verdicts]
) -> tuple[dict[str, pa.Table], Numbers]:
    """What each side holds, at the instants at which every side of FROM holds something; and these."""
    aliases = [side.alias for side in query.sides]
    others = [side.alias for side in query.streams if side.alias not in aliases]
    passed = {alias: judged[alias] == Verdict.EXACT for alias in (*aliases, *others)}
    numbers = candidates(
        [stays[alias] for alias in aliases], [passed[alias] for alias in aliases], [stays[alias] for alias in others]
    )
    held = {alias: bag(stays[alias], passed[alias], numbers) for alias in aliases}
    for _, found in held.values():
        numbers = np.intersect1d(numbers, found)
    held |= {alias: bag(stays[alias], passed[alias], numbers) for alias in others}
    bags = {}
    for alias, (rows, found) in held.items():
        kept = np.isin(found, numbers)
        instants = pa.array(query.offset + found[kept] * query.slide)
        bags[alias] = values[alias].table.take(pa.array(rows[kept])).append_column("instant", instants)
    return bags, numbers


def _starts(query: JoinSpec, stays: Mapping[str, Stay], instants: Numbers) -> Numbers:
    """The least start of the windows of time, or a slide before the instant."""
    found = [_start(side, stays[side.alias], instants) for side in query.sides if side.window.kind in (RANGE, LANDMARK)]
    return np.minimum.reduce(found) if found else instants - query.slide


def _start(side: Side, stay: Stay, instants: Numbers) -> Numbers:
    if side.window.kind == RANGE:
        return instants - side.window.size
    return np.full(len(instants), stay.start or 0, np.int64)


def windows_of(
    bags: Mapping[str, pa.Table], instants: Numbers, starts: Numbers, emitted: Numbers
) -> list[dict[str, int]]:
    held = np.concatenate([table.column("instant").to_numpy() for table in bags.values()])
    exact = dict(zip(*(a.tolist() for a in np.unique(held, return_counts=True)), strict=True))
    rows = dict(zip(*(a.tolist() for a in np.unique(emitted, return_counts=True)), strict=True))
    return [
        {"start": start, "end": end, "rows": rows.get(end, 0), "exact": exact[end]}
        for start, end in zip(starts.tolist(), instants.tolist(), strict=True)
    ]


def _publish(world: World, query: JoinSpec) -> None:
    """The results as a stream: ts is the end of the window, and prefixes are text."""
    found = world.found[query.name]
    table, ends = found.rows, found.rows.column("window_end")
    fields = [FieldSpec(o.name, STRING if o.term.type.kind is Kind.PREFIX else o.term.type) for o in query.outputs]
    if "ts" not in table.schema.names:
        table = table.append_column("ts", ends)
    fields += [FieldSpec(name, TIMESTAMP) for name in table.schema.names[len(fields) :]]
    world.data[query.name], world.fields[query.name] = table, tuple(fields)
    world.courses[query.name] = results_course(np.asarray(ends.cast(pa.int64()).to_numpy(), np.int64), found.arrived)


def stream_account(world: World, stream: str) -> ExpectedAccount:
    """For each record the first that applies to any side of any query."""
    count = world.data[stream].num_rows
    sides = [
        world.found[query.name].verdicts[side.alias]
        for query in world.app.queries
        for side in query.streams
        if side.source == stream
    ]
    return account_of(np.minimum.reduce([np.full(count, Verdict.MALFORMED, np.int8), *sides]))


def account_of(found: Verdicts) -> ExpectedAccount:
    counts = np.bincount(found, minlength=len(Verdict))
    return ExpectedAccount(int(counts.sum()), *(int(counts[verdict]) for verdict in Verdict))
