"""The same for queries that join their stream with tables: by equality or ranges, one row or several for a record.

A record that stands for w records brings w times the combinations that it has; its rows of the tables add to a group
all at once, so that it is one pick of the group, whatever their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.logical.query import Stream
from penstock.logical.types import BIGINT, DOUBLE, TIMESTAMP
from penstock.testing.oracle.columns import Numbers, read_column
from penstock.testing.oracle.database import run
from penstock.testing.oracle.joins.answers import (
    aggregates_of,
    argument_slot,
    finished,
    groups_of,
    pairs_of,
    shown,
    zeros_of,
)
from penstock.testing.oracle.joins.bags import bag
from penstock.testing.oracle.joins.expected import (
    ExpectedApp,
    ExpectedJoin,
    Held,
    World,
    begin,
    hold,
    stream_account,
    windows_of,
)
from penstock.testing.oracle.joins.sides import ROW
from penstock.testing.oracle.joins.spec import AppSpec, JoinSpec, OutputSpec, RunLog, StreamSpec
from penstock.testing.oracle.joins.terms import AggregateOf, Term, slot
from penstock.testing.oracle.joins.watermarks import StreamCourse, evaluated_in
from penstock.testing.oracle.triage.expected import picked_of, triaged_timeline
from penstock.testing.oracle.triage.groups import Asked, Made, Picked, estimated, part_of, with_tolerances
from penstock.testing.oracle.triage.linear import Summand
from penstock.testing.oracle.triage.reading import Reading

STEP, WEIGHT = "oracle_step", "#weight"


def expect_triaged_joins(
    app: AppSpec,
    data: Mapping[str, pa.Table],
    log: RunLog,
    readings: Mapping[str, Reading],
    watermarks: Mapping[str, Sequence[int | None]] | None = None,
) -> ExpectedApp:
    """What every query must give with LIMIT DELAY; each reads one stream, and tables. `readings`, and `watermarks` if
    given (see `expect_triaged`), are by stream.

    Raises RunError where an integer sum does not fit BIGINT: the run must end with a message.
    """
    world = begin(app, data, log)
    world.unread = {name: ~reading.read for name, reading in readings.items()}
    for stream in app.streams:
        given = (watermarks or {}).get(stream.name)
        world.streams[stream.name] = _course(stream, data[stream.name], log, readings[stream.name], given)
    world.courses |= world.streams
    for query in app.queries:
        world.found[query.name] = _answered(world, query, readings)
    return ExpectedApp(world.found, {stream.name: stream_account(world, stream.name) for stream in app.streams})


def _course(
    stream: StreamSpec, data: pa.Table, log: RunLog, reading: Reading, watermarks: Sequence[int | None] | None
) -> StreamCourse:
    named = Stream(stream.name, (), "", (), stream.time, stream.delay, stream.ahead)
    time = read_column(data.column(stream.time), TIMESTAMP)
    followed = triaged_timeline(named, time, log.rows[stream.name], reading, watermarks)
    return StreamCourse(followed.times, followed.good, followed.arrived, followed.landmark, followed.watermarks)


def _answered(world: World, query: JoinSpec, readings: Mapping[str, Reading]) -> ExpectedJoin:
    if len(query.streams) != 1 or world.app.stream(query.sides[0].source) is None:
        raise ValueError(f"'{query.name}' does not read one stream alone")
    held = hold(world, query)
    reading = readings[query.sides[0].source]
    picked = _picked(held, reading)
    rows = _rows(held, reading, picked)
    emitted = np.asarray(rows.column("instant").to_numpy(), np.int64)
    windows = windows_of(held.inputs.bags, held.instants, held.starts, emitted)
    windows = [account | {"triaged": picked.triaged(account["end"])} for account in windows]
    return ExpectedJoin(rows.drop_columns(["instant"]), held.verdicts, windows, evaluated_in(held.marks, emitted))


def _picked(held: Held, reading: Reading) -> Picked:
    """Of the whole stream, by the instant that is the window's end."""
    query = held.query
    stay = held.stays[query.sides[0].alias]
    numbers = (held.instants - query.offset) // query.slide
    counted = stay.course.good & stay.open
    (rows, found), (_, holed) = (bag(stay, counted & some, numbers) for some in (reading.picked, reading.dropped))
    return picked_of(rows, stay.grid.instant(found), reading, stay.grid.instant(holed))


def _rows(held: Held, reading: Reading, picked: Picked) -> pa.Table:
    query = held.query
    pairs = pairs_of(query, held.inputs)
    records = np.asarray(pairs.column(ROW).to_numpy(), np.int64)
    windows = pa.table({"instant": held.instants, "window_start": held.starts, "window_end": held.instants})
    if query.keys is None:
        weight = Term(WEIGHT, slot(WEIGHT), BIGINT)
        pairs = pairs.append_column(slot(WEIGHT), pa.array(reading.weights[records]))
        query = replace(query, outputs=(*query.outputs, OutputSpec("weight", weight)))
        return shown(query, finished(query, pairs, windows), {})
    made = _made(held, pairs, records, reading)
    wanted = [output for output in query.outputs if output.term.aggregates]
    groups, scales = estimated(made, [_asked(output) for output in wanted], picked)
    places = {output.name: i for i, output in enumerate(wanted)}
    outputs = [one for o in query.outputs for one in _with_estimates(o, places.get(o.name))]
    asked = replace(query, outputs=tuple(outputs))
    return with_tolerances(shown(asked, finished(asked, groups, windows), zeros_of(query, pairs)), scales)


def _made(held: Held, pairs: pa.Table, records: Numbers, reading: Reading) -> Made:
    query = held.query
    by = ["instant", *(slot(term.text) for term in dict.fromkeys(query.key_terms))]
    weights = reading.weights[records]
    weighted, once, rest = (groups_of(query, _repeated(pairs, n), held.instants) for n in (weights, 1, weights - 1))
    lists = [f"{part_of(ROW, STEP, _value(one))} AS {one.slot}" for one in aggregates_of(query)]
    stepped = pairs.append_column(STEP, pa.array(reading.steps[records].astype(np.int64)))
    parts = run(f"SELECT {', '.join([*by, *lists])} FROM pairs GROUP BY {', '.join(by)}", {}, pairs=stepped)
    return Made(by, weighted, once, rest, parts)


def _repeated(pairs: pa.Table, times: Numbers | int) -> pa.Table:
    return pairs.take(pa.array(np.repeat(np.arange(pairs.num_rows), times)))


def _value(one: AggregateOf) -> str:
    column = argument_slot(one)
    return f"CAST({column} IS NOT NULL AS BIGINT)" if one.function == "count" else column


def _asked(output: OutputSpec) -> Asked:
    """As in the select list; one aggregate alone has an error, and what adds some up may have one."""
    term = output.term
    one = next((a for a in term.aggregates if a.term == term and not a.distinct), None)
    if one is not None:
        return Asked(output.name, term.sql, term.type, one.function, one.slot)
    parts = tuple(map(_summand, term.aggregates)) if not term.uses else ()
    return Asked(output.name, term.sql, term.type, parts=parts)


def _summand(one: AggregateOf) -> Summand:
    argument = "" if one.argument is None else f"{one.argument.text} {one.test and one.test.text}"
    return Summand("" if one.distinct else one.function, argument, one.slot, one.type)


def _with_estimates(output: OutputSpec, place: int | None) -> list[OutputSpec]:
    added = []
    if place is not None:
        for what, kind in (("exact", output.term.type), ("estimated", output.term.type), ("error", DOUBLE)):
            name = f"{what}_{output.name}"
            added.append(OutputSpec(name, Term(name, f"{what}{place}", kind)))
    return [output, *added]
