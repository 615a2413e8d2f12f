"""Records that nobody looks at: they are triaged for every query of their stream, and the account says so.

Nothing is known of a record that was dropped but about when it came. For each pane the picks of the stream then have
one more row, of a negative weight: so many records were lost there, and no error can be told (`merge.estimates`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.logical.query import WEIGHT
from penstock.relations.closing import Reader
from penstock.sharing.plan import SharedPlan
from penstock.sources.live.course import Course
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
    """What is left of a plan where nothing is read: how many records of each weight came."""
    kept = tuple(one for one in plan.relations if not one.booked and one.attributes == (WEIGHT,))
    return replace(plan, stored=replace(plan.stored, relations=kept, readers=()), tables=(), joins=())


def lost_records(course: Course) -> Iterator[pa.RecordBatch]:
    """A row for each block of records that are dropped: its time, and how many there are."""
    numbers = np.diff(course.edges)[course.greatest[1:] != LEAST]
    yield pa.record_batch(
        [pa.array(lost_times(course)).cast(TIME), pa.array(-numbers)], names=[course.time, WEIGHT.name]
    )


def lost_times(course: Course) -> np.ndarray:
    """The times of these rows."""
    times: np.ndarray = course.greatest[1:][course.greatest[1:] != LEAST]
    return times
