"""The rows and accounts of an app whose results have a promised delay, on one live stream.

    raw table ──► attributes ──► what is read of it (`reading`) ──► time: batches, watermarks
                       └──► per query: windows of every record, verdicts; what is not read is triaged
                                                  └──► groups with estimates ──► HAVING, ORDER BY, LIMIT, select list

Choices where the design is silent: a time that is not read advances the watermark (the source's index knows it), unless
the run's own watermarks are given; a pick may be too far ahead of all records before it, read or not, as that index
knows them; where n is 1 there is no error once a record of the group was picked, whatever its value is; the
sum of nothing but NULLs has none; windows of which a record was dropped have no errors, unless they were closed when it
came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.logical.query import WEIGHT, Query, QuerySet, Stream
from penstock.logical.types import TIMESTAMP
from penstock.logical.window import TIME
from penstock.testing.oracle.answers import OracleAnswer, finished, shown, window_accounts, with_bounds, zeros_of
from penstock.testing.oracle.attributes import Prepared, prepare
from penstock.testing.oracle.columns import Flags, Numbers, OracleValues, read_column
from penstock.testing.oracle.expected import Expected, Verdict, Verdicts, account_of, verdicts_of
from penstock.testing.oracle.membership import Membership, assign
from penstock.testing.oracle.timeline import NOTHING_CLOSED, Timeline, follow_time
from penstock.testing.oracle.triage.estimates import (
    Read,
    groups_with_estimates,
    said_plainly,
    with_estimates,
)
from penstock.testing.oracle.triage.groups import Picked, with_tolerances
from penstock.testing.oracle.triage.reading import Range, Reading, read_records


def expect_triaged(
    queries: QuerySet,
    data: pa.Table,
    batches: Sequence[int],
    ranges: Sequence[Range],
    key: int,
    stream: str | None = None,
    watermarks: Sequence[int | None] | None = None,
) -> Expected:
    """Compute what the queries on one stream (the only one, unless named) must give, all of them with LIMIT DELAY, or
    said without it.

    `data` is the stream as it stands in its source, `batches` are the row counts of the logged micro-batches, `ranges`
    those of the whole run (`whole_run`), `key` is that of the picks (`key_of`). `watermarks` are those after each
    batch, where the run's own are to be believed: a tick of the clock may have moved them.
    Raises RunError where an integer sum does not fit BIGINT: the run must end with a message.
    """
    name = stream if stream is not None else queries.streams[0].name
    root, readers = queries.stream(name), [said_plainly(query) for query in queries.readers(name)]
    _refuse(queries, name)
    reading = read_records(data.num_rows, ranges, key)
    timeline = triaged_timeline(root, read_column(data.column(root.time), TIMESTAMP), batches, reading, watermarks)
    prepared = _with_weights(prepare(root, readers, data, timeline), reading)
    judged = {query.name: _judge(query, prepared, reading) for query in readers}
    every = [np.full(data.num_rows, Verdict.MALFORMED, np.int8), *(verdicts for verdicts, _ in judged.values())]
    return Expected(
        {name: answer.table for name, (_, answer) in judged.items()},
        {name: answer.windows for name, (_, answer) in judged.items()},
        {name: account_of(verdicts) for name, (verdicts, _) in judged.items()},
        account_of(np.minimum.reduce(every)),
        timeline.watermarks,
    )


def _refuse(queries: QuerySet, stream: str) -> None:
    for query in queries.queries:
        if query.inputs != (stream,) or query.join is not None or query.window.axis != TIME:
            raise ValueError(f"'{query.name}' is no query on windows of time of '{stream}' alone")


def triaged_timeline(
    stream: Stream,
    time: OracleValues,
    batches: Sequence[int],
    reading: Reading,
    watermarks: Sequence[int | None] | None,
) -> Timeline:
    """Of all records; which one was the first, those that are read say alone."""
    every = follow_time(stream, time, batches)
    marks = every.watermarks if watermarks is None else tuple(watermarks)
    before = np.array([NOTHING_CLOSED, *(NOTHING_CLOSED if w is None else w for w in marks)], np.int64)
    first = np.flatnonzero(every.good & reading.read)
    landmark = int(every.times[first[0]]) if len(first) else None
    return replace(every, watermarks=marks, closed_until=before[every.arrived], landmark=landmark)


def _with_weights(prepared: Prepared, reading: Reading) -> Prepared:
    table = prepared.table.append_column("weight", pa.array(reading.weights))
    return replace(prepared, table=table, names={**prepared.names, WEIGHT: "weight"})


def _judge(query: Query, prepared: Prepared, reading: Reading) -> tuple[Verdicts, OracleAnswer]:
    membership = assign(query.window, prepared.timeline)
    verdicts = verdicts_of(query, prepared, membership)
    verdicts[~reading.read] = Verdict.TRIAGED
    return verdicts, _answer(with_estimates(query), prepared, membership, verdicts == Verdict.EXACT, reading)


def _answer(query: Query, prepared: Prepared, membership: Membership, exact: Flags, reading: Reading) -> OracleAnswer:
    rows, windows = membership.pairs(exact)
    read = Read(rows, windows, reading.weights[rows], reading.steps[rows].astype(np.int64))
    picked = _picked(membership, reading)
    groups, names, scales = groups_with_estimates(query, prepared, read, picked)
    found = finished(query, with_bounds(groups, membership), names)
    emitted = np.asarray(found.column("window_number").to_numpy(), np.int64)
    table = with_tolerances(shown(query, found, zeros_of(query, prepared, exact)), scales)
    accounts = window_accounts(membership, windows, emitted)
    accounts = [account | {"triaged": picked.triaged(account["window"])} for account in accounts]
    return OracleAnswer(table, membership.closing(emitted), accounts)


def _picked(membership: Membership, reading: Reading) -> Picked:
    """Of the whole stream, whatever the query asks of records."""
    good = membership.timeline.good
    _, holed = membership.pairs(good & reading.dropped)
    return picked_of(*membership.pairs(good & reading.picked), reading, holed)


def picked_of(rows: Numbers, windows: Numbers, reading: Reading, holed: Numbers) -> Picked:
    """From the picks (record, window), and windows of dropped records."""
    sizes: dict[int, Counter[int]] = {}
    for step, window in zip(reading.steps[rows].tolist(), windows.tolist(), strict=True):
        sizes.setdefault(window, Counter())[step] += 1
    return Picked(sizes, frozenset(holed.tolist()))
