"""The rows and accounts that an app must produce, computed without any code of the engine.

    raw table ──► attributes (typed values, fits?) ──► timeline (batches, watermarks)
                          │                                │
                          └──► per query: membership (its windows of every record)
                                          verdict of every record: malformed, filtered, late or exact
                                          exact records ──► answers (groups, HAVING, ORDER BY, select list)
                                                              └──► input of the queries on this query

DuckDB filters, groups and computes expressions; addresses, windows, watermarks, sums of doubles and variances are
plain Python.  Those sums are correctly rounded, so an engine may differ by 1e-9 relative; a variance that is truly
zero may be off by 1e-18 of the square of the greatest value (a deviation by 1e-9 of that value).

Choices where the design is silent: a record whose group HAVING or LIMIT drops is exact; a time ahead of MAX AHEAD
does not advance the watermark; an IPv4 address under a prefix longer than 32 bits keeps its 32 bits; integer
arithmetic that leaves BIGINT is NULL; LIKE has no escape character; integers and doubles compare as doubles; results
of a query are late for the queries on it where all their windows are closed (only windows of rows, whose end is
a time of their records, can bring that about); a landmark window over results goes on to the window of the
greatest of their times, or as far as the watermark closes; a variance beyond the largest double is infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.logical.query import Query, QuerySet, Stream, results_stream
from penstock.logical.types import TIMESTAMP
from penstock.logical.window import ROWS
from penstock.testing.oracle.answers import FLOAT_TOLERANCE, OracleAnswer, answer
from penstock.testing.oracle.attributes import Prepared, prepare
from penstock.testing.oracle.columns import read_column
from penstock.testing.oracle.membership import Membership, Since, assign
from penstock.testing.oracle.timeline import Timeline, follow_results, follow_time

__all__ = ["FLOAT_TOLERANCE", "Expected", "ExpectedAccount", "Since", "Verdict", "expect"]


class Verdict(IntEnum):
    """What became of a record; smaller wins in the stream's account. (Nothing is triaged without overload.)"""

    EXACT = 0
    TRIAGED = 1
    LATE = 2
    FILTERED = 3
    MALFORMED = 4


NOT_READ = len(Verdict)  # came before the query was added
Verdicts = npt.NDArray[np.int8]


@dataclass(frozen=True)
class ExpectedAccount:
    """input = exact + triaged + late + filtered + malformed."""

    input: int
    exact: int
    triaged: int
    late: int
    filtered: int
    malformed: int

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True)
class Expected:
    """What a run must show: rows and accounts of windows by query name (hidden queries have none to show), account by
    query name, the stream's account over the queries that read it themselves, WM(N) by batch."""

    rows: Mapping[str, pa.Table]
    windows: Mapping[str, list[dict[str, int]]]
    accounts: Mapping[str, ExpectedAccount]
    stream: ExpectedAccount
    watermarks: tuple[int | None, ...]


@dataclass(frozen=True)
class _Judged:
    """A query with its answer and the verdict of every record of its stream."""

    query: Query
    verdicts: Verdicts
    answer: OracleAnswer


def expect(
    queries: QuerySet,
    data: pa.Table,
    batches: Sequence[int],
    stream: str | None = None,
    since: Mapping[str, tuple[int | None, int, int]] | None = None,
) -> Expected:
    """Compute what the queries on one stream (the only one, unless named) and on their results must give.

    `data` is the stream as it stands in its files; `batches` are the row counts of the logged micro-batches.
    `since` has (after time, first row, first batch) of queries that were added while it ran, see `Since`.
    Raises RunError where an integer sum does not fit BIGINT: the run must end with a message.
    """
    name = stream if stream is not None else queries.streams[0].name
    root = queries.stream(name)
    added = {query: Since(*place) for query, place in (since or {}).items()}
    timeline = follow_time(root, read_column(data.column(root.time), TIMESTAMP), batches)
    judged = list(_judge_readers(queries, root, data, timeline, added))
    direct = [one.verdicts for one in judged if one.query.stream == name]
    worst = np.full(data.num_rows, Verdict.MALFORMED, np.int8)
    return Expected(
        {one.query.name: one.answer.table for one in judged if not one.query.hidden},
        {one.query.name: one.answer.windows for one in judged if not one.query.hidden},
        {one.query.name: account_of(one.verdicts) for one in judged},
        account_of(np.minimum.reduce([worst, *direct])),
        timeline.watermarks,
    )


def _judge_readers(
    queries: QuerySet, stream: Stream, data: pa.Table, timeline: Timeline, added: Mapping[str, Since]
) -> Iterator[_Judged]:
    """The queries on a stream, each followed by those on its results."""
    readers = queries.readers(stream.name)
    prepared = prepare(stream, readers, data, timeline)
    for query in readers:
        judged = _judge(query, prepared, added.get(query.name))
        yield judged
        if queries.readers(query.name):
            yield from _judge_results(queries, judged, timeline, added)


def _judge_results(
    queries: QuerySet, judged: _Judged, below: Timeline, added: Mapping[str, Since]
) -> Iterator[_Judged]:
    stream = results_stream(judged.query)
    if any(reader.window.axis == ROWS for reader in queries.readers(stream.name)):
        raise ValueError(f"windows of rows over the results of '{stream.name}'")
    data = judged.answer.table
    ends = data.column(stream.time)
    for field in stream.fields:
        if field.name not in data.schema.names:  # ts, unless the select list has one
            data = data.append_column(field.name, ends)
    times = np.asarray(read_column(ends, TIMESTAMP).array.to_numpy(zero_copy_only=False), np.int64)
    timeline = follow_results(times, judged.answer.arrived, below)
    yield from _judge_readers(queries, stream, data, timeline, added)


def _judge(query: Query, prepared: Prepared, since: Since | None) -> _Judged:
    membership = assign(query.window, prepared.timeline, since)
    verdicts = verdicts_of(query, prepared, membership)
    if since is not None:
        verdicts[prepared.timeline.arrived < since.first_batch] = NOT_READ
    return _Judged(query, verdicts, answer(query, prepared, membership, verdicts == Verdict.EXACT))


def verdicts_of(query: Query, prepared: Prepared, membership: Membership) -> Verdicts:
    """Malformed is judged first, then filtered, then late."""
    good = prepared.timeline.good
    for name in query.columns:
        good = good & prepared.fits[name]
    verdicts = np.full(prepared.rows, Verdict.EXACT, np.int8)
    verdicts[~membership.counted] = Verdict.LATE
    verdicts[~(membership.inside & prepared.passes(query.where))] = Verdict.FILTERED
    verdicts[~good] = Verdict.MALFORMED
    return verdicts


def account_of(verdicts: Verdicts) -> ExpectedAccount:
    counts = np.bincount(verdicts, minlength=len(Verdict))
    return ExpectedAccount(int(counts[: len(Verdict)].sum()), *(int(counts[verdict]) for verdict in Verdict))
