"""Records that nobody looks at: they are triaged for every query of their stream, and the account says so.

Nothing is known of a record that was dropped but when it came. For each pane the picks of the stream then have
one more row, of a negative weight: so many records were lost there, and no error can be told (`merge.estimates`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.logical.query import WEIGHT
from penstock.logical.window import TIME as AXIS
from penstock.logical.window import Panes
from penstock.relations.closing import Reader
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import Source
from penstock.sources.live.course import Course, neighbours
from penstock.sources.live.times import LEAST
from penstock.state.account import Entry, TaskAccount
from penstock.state.protocol import TaskReport

TIME = pa.timestamp("us", tz="UTC")


def triaged(report: TaskReport, plan: SharedPlan, unread: int) -> TaskReport:
    """The report of a task that left so many records of its range unread."""
    account, more = report.account, Entry(input=unread, triaged=unread)
    queries = {name: account.queries.get(name, Entry()) + more for name in map(_name, plan.readers)}
    return replace(report, account=TaskAccount(account.stream + more, queries, account.malformed))


def lost(report: TaskReport, plan: SharedPlan, unread: int) -> TaskReport:
    """The same of a task that read nothing: what it wrote down are no records."""
    return triaged(replace(report, account=TaskAccount(Entry())), plan, unread)


def _name(reader: Reader) -> str:
    return reader.query


def picks_alone(plan: SharedPlan) -> SharedPlan:
    """What is left of a plan where nothing is read: how many records of each weight came. Which of them were too far
    ahead, the source's index has judged."""
    kept = tuple(one for one in plan.relations if not one.booked and one.attributes == (WEIGHT,))
    stream = replace(plan.stream, ahead=None)
    return replace(plan, stream=stream, stored=replace(plan.stored, relations=kept, readers=()), tables=(), joins=())


def lost_records(course: Course, source: Source, kept: SharedPlan) -> Iterator[pa.RecordBatch]:
    """A row for each block of records that are dropped: its last time, and how many there are. Of a block in which a
    pane ends the times are read, and it has a row for each of its panes. Nothing where nobody keeps picks: of queries
    without a promise the account alone knows."""
    if not kept.relations:
        return
    panes = {relation.panes for relation in kept.relations if relation.panes.axis == AXIS}
    split = _ends(course.greatest, panes)
    parts = [np.stack([course.edges[1:], course.greatest[1:]])[:, ~split]]
    for first, last in neighbours(np.flatnonzero(split)):
        times = course.times(source, first, last)
        lasts = np.flatnonzero(np.append(_ends(times, panes), True))
        parts.append(np.stack([course.edges[first] + lasts + 1, times[lasts]]))
    rows = np.concatenate(parts, axis=1)
    stops, times = rows[:, np.argsort(rows[0])]
    numbers, timely = np.diff(stops, prepend=course.edges[0]), times != LEAST
    yield pa.record_batch(
        [pa.array(times[timely]).cast(TIME), pa.array(-numbers[timely])], names=[course.time, WEIGHT.name]
    )


def _ends(times: np.ndarray, panes: Iterable[Panes]) -> np.ndarray:
    """Behind which of these times, but the last, a pane of any kind ends before the next."""
    found = np.zeros(len(times) - 1, bool)
    for one in panes:
        found |= np.diff(times // one.slide) != 0
        found |= np.diff(times % one.slide >= one.cut)
    return found
