"""The rows and accounts of an app whose results have a promised delay, on one live stream.

    raw table ──► attributes ──► what is read of it (`reading`) ──► time: batches, watermarks
                       └──► per query: windows of every record, verdicts; what is not read is triaged
                                                  └──► groups with estimates ──► HAVING, ORDER BY, LIMIT, select list

Choices where the design is silent: a time that is not read advances the watermark (the source's index knows it), unless
the run's own watermarks are given; MAX AHEAD is judged among the records that are read; an average or a sum of which n
is 1 has no error once a record of the group was picked, whatever its value is; the error of a sum of nothing but NULLs
is that of zeros; windows of which a record was dropped have no errors, unless they were closed when it came.
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
from penstock.testing.oracle.columns import Flags, OracleValues, read_column
from penstock.testing.oracle.expected import Expected, Verdict, Verdicts, account_of, verdicts_of
from penstock.testing.oracle.membership import Membership, assign
from penstock.testing.oracle.timeline import NOTHING_CLOSED, Timeline, follow_time
from penstock.testing.oracle.triage.estimates import (
    Read,
    groups_with_estimates,
    said_plainly,
    with_estimates,
    with_tolerances,
)
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
    timeline = _timeline(root, read_column(data.column(root.time), TIMESTAMP), batches, reading, watermarks)
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


def _timeline(
    stream: Stream,
    time: OracleValues,
    batches: Sequence[int],
    reading: Reading,
    watermarks: Sequence[int | None] | None,
) -> Timeline:
    """Of all records; which times are good, and which one was the first, say those that are read."""
    every = follow_time(replace(stream, ahead=None), time, batches)
    seen = OracleValues(time.array.filter(pa.array(reading.read)), time.fits[reading.read])
    counts = np.bincount(every.arrived[reading.read], minlength=len(batches))
    read = follow_time(stream, seen, counts.tolist())
    good = every.good.copy()
    good[reading.read] = read.good
    marks = every.watermarks if watermarks is None else tuple(watermarks)
    before = np.array([NOTHING_CLOSED, *(NOTHING_CLOSED if w is None else w for w in marks)], np.int64)
    closed = before[every.arrived]
    return replace(every, good=good, watermarks=marks, closed_until=closed, landmark=read.landmark)


def _with_weights(prepared: Prepared, reading: Reading) -> Prepared:
    table = prepared.table.append_column("weight", pa.array(reading.weights))
    return replace(prepared, table=table, names={**prepared.names, WEIGHT: "weight"})


def _judge(query: Query, prepared: Prepared, reading: Reading) -> tuple[Verdicts, OracleAnswer]:
    membership = assign(query.window, prepared.timeline)
    verdicts = verdicts_of(query, prepared, membership)
    verdicts[~reading.read] = Verdict.TRIAGED
    return verdicts, _answer(with_estimates(query), prepared, membership, verdicts == Verdict.EXACT, reading)


def _answer(query: Query, prepared: Prepared, membership: Membership, exact: Flags, reading: Reading) -> OracleAnswer:
    read = read_in_windows(membership, exact, reading)
    groups, names, scales = groups_with_estimates(query, prepared, read)
    found = finished(query, with_bounds(groups, membership), names)
    emitted = np.asarray(found.column("window_number").to_numpy(), np.int64)
    table = with_tolerances(shown(query, found, zeros_of(query, prepared, exact)), scales)
    windows = window_accounts(membership, read.windows, emitted)
    triaged = {window: sum((2**k - 1) * n for k, n in sizes.items()) for window, sizes in read.sizes.items()}
    windows = [account | {"triaged": triaged.get(account["window"], 0)} for account in windows]
    return OracleAnswer(table, membership.closing(emitted), windows)


def read_in_windows(membership: Membership, exact: Flags, reading: Reading) -> Read:
    """What counts for a query, and what the stream's picks and holes in its windows are."""
    good = membership.timeline.good
    rows, windows = membership.pairs(exact)
    sizes: dict[int, Counter[int]] = {}
    for row, window in zip(*(one.tolist() for one in membership.pairs(good & reading.picked)), strict=True):
        sizes.setdefault(window, Counter())[int(reading.steps[row])] += 1
    _, holed = membership.pairs(good & reading.dropped)
    steps = reading.steps.astype(np.int64)
    return Read(rows, windows, reading.weights[rows], steps[rows], sizes, frozenset(holed.tolist()))
