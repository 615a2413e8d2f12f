"""Columns of a task: from an Arrow batch to records that can be judged and packed.

    Arrow batch ──► numbers (`runtime.task.arrow`, `codes`) ──► times judged ──► computed columns ──► Records

Every column becomes int64 numbers with a mask of what is there. A value that does not fit its type is *bad*, and makes
its record malformed for the queries that read the column. A column that queries compute is computed once for all of
them, and from then on is a column like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.pack import ALL_VALID
from penstock.logical.expressions import Column, Computed, Expression, Prefix, RecordNumber, Sound, walk
from penstock.logical.query import WEIGHT, Field
from penstock.logical.types import Kind
from penstock.logical.window import ALL, ROWS, TIME
from penstock.relations.component import Component, inet6_component
from penstock.runtime.epoch import Epoch
from penstock.runtime.expressions.evaluate import Operand, Scope, evaluate
from penstock.runtime.expressions.operands import decoded, flags, truths
from penstock.runtime.task.arrow import Ingested, address_array, doubles, numeric, with_nulls
from penstock.runtime.task.codes import Codes
from penstock.runtime.task.times import Faults, Times
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import BAD, FAULT, UNREADABLE

Array = np.ndarray


@dataclass(frozen=True)
class Records:
    """The records of a chunk: columns by name, and their places on the axes of windows.

    `timely` says which have a usable time (None: all); the others have a time that is none of theirs. Without a window
    a record only has to be `readable`. `faults` marks malformed records by reason. `first` is the time of the stream's
    first record, once it is known.
    """

    columns: Mapping[str, Ingested]
    times: Array
    rows: Array
    timely: Array | None
    readable: Array | None
    faults: Faults
    first: int | None
    scope: Scope
    dictionaries: Mapping[Component, Dictionary]

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, axis: str) -> Array:
        """Where the records are on an axis."""
        if axis == ROWS:
            return self.rows
        return self.times if axis == TIME else np.zeros(len(self), np.int64)

    def sound(self, axis: str) -> Array | None:
        """Which of them have a place there (None: all)."""
        return self.readable if axis == ALL else self.timely


class Columns:
    """Turns the batches of one task into records; owns the task's dictionaries and knows the times met.

    `predicates` are the expressions, besides computed columns, that will ask for operands.
    """

    def __init__(self, plan: SharedPlan, epoch: Epoch, predicates: Iterable[Expression]) -> None:
        self._plan, self._epoch, self._fields = plan, epoch, plan.fields
        self._computed = tuple(dict.fromkeys(c for r in plan.relations for c in r.computed))
        asked = (*predicates, *self._computed)
        self._read = _read(asked)
        self._of_records = _of_records(asked)
        self._weighed = any(WEIGHT in r.attributes for r in plan.relations)
        self.types = {f.name: f.type for f in self._fields} | {c.name: c.type for c in self._computed}
        self.types |= {WEIGHT.name: WEIGHT.type} if self._weighed else {}
        prefixes = {(a.column.name, a.length) for r in plan.relations for a in r.attributes if isinstance(a, Prefix)}
        self._codes = Codes(self.types, prefixes)
        self._note_dictionaries()
        windows = [reader.window for reader in plan.readers]
        self._windows = [window for window in windows if window.panes.axis == TIME]
        self.times = self._new_times()
        # Without a window of time or rows nobody asks for the time.
        self._time = next((field for field in self._fields if field.name == plan.stream.time), None)

    def _new_times(self) -> Times:
        return Times(self._plan.stream, self._epoch, self._windows)

    def reset(self) -> None:
        """Empty the dictionaries: codes begin at zero."""
        self._codes.reset()
        self._note_dictionaries()

    def _note_dictionaries(self) -> None:
        """Dictionaries change only when a batch is taken, or by `reset`: what others ask of them is kept until then."""
        self.dictionaries: Mapping[Component, Dictionary] = self._codes.dictionaries
        self.nbytes = self._codes.nbytes

    def look_back(self, batches: Iterable[pa.RecordBatch]) -> None:
        """See the times of records that stand before those of this task, for MAX AHEAD. Another task counts them."""
        if self._time is None:
            return
        times = self._new_times()
        for batch in batches:
            times.judge(self._column(self._time, batch), [])
        self.times.greatest = times.greatest

    def take(self, batch: pa.RecordBatch, places: Array) -> Records:
        """The records of a batch, which stand at these positions of the stream."""
        rows, faults = batch.num_rows, _given(batch)
        known = _any_of(faults, rows)
        columns: dict[str, Ingested] = {}
        for field in self._fields:
            column = columns[field.name] = self._column(field, batch)
            if column.bad is not None:
                faults.append((f"{field.name} is not a valid {field.type}", column.bad & ~known))
        if self._weighed:
            columns[WEIGHT.name] = self._weights(batch)
        times, timely = self._judged_times(columns, faults, rows)
        operands: dict[Expression, Operand] = {one: self._operand(one, columns[one.name]) for one in self._read}
        operands |= {one: self._of_record(one, columns, places) for one in self._of_records}
        scope = Scope(operands.__getitem__, rows, versions=self._epoch.tables)
        for made in self._computed:
            columns[made.name] = self._made(made, evaluate(made.expression, scope))
        self._note_dictionaries()
        return Records(
            columns, times, places, timely, _readable(batch), faults, self.times.first, scope, self.dictionaries
        )

    def _weights(self, batch: pa.RecordBatch) -> Ingested:
        """What the records stand for; a batch that says so itself is of records that nobody has read."""
        if WEIGHT.name in batch.schema.names:
            return numeric(WEIGHT.type, batch.column(WEIGHT.name))
        return Ingested(np.full(batch.num_rows, 1 << self._epoch.step), ALL_VALID)

    def _judged_times(self, columns: Mapping[str, Ingested], faults: Faults, rows: int) -> tuple[Array, Array | None]:
        if self._time is None:
            return np.zeros(rows, np.int64), None
        return self.times.judge(columns[self._time.name], faults)

    def _column(self, field: Field, batch: pa.RecordBatch) -> Ingested:
        array, kind = batch.column(field.name), field.type.kind
        if kind is Kind.STRING:
            column = self._codes.strings(field.name, array)
        elif kind is Kind.INET:
            column = self._codes.addresses(field.name, array)
        else:
            column = numeric(field.type, array)
        flag = BAD + field.name
        if flag in batch.schema.names:  # values that the source found bad
            bad = truths(batch.column(flag))
            column.bad = bad if column.bad is None else column.bad | bad
        return column

    def _made(self, column: Computed, operand: Operand) -> Ingested:
        """A column that queries compute, from its values."""
        values = operand.values
        valid = ALL_VALID if operand.valid is None or operand.valid.all() else operand.valid.astype(np.uint8)
        match column.type.kind:
            case Kind.STRING:
                return self._codes.strings(column.name, with_nulls(values, valid))
            case Kind.INET:
                return self._codes.addresses(column.name, address_array(values, operand.valid))
            case Kind.DOUBLE:
                return doubles(np.ascontiguousarray(values, np.float64), valid)
        return Ingested(np.ascontiguousarray(values).astype(np.int64), valid)

    def _of_record(self, asked: RecordNumber | Sound, columns: Mapping[str, Ingested], places: Array) -> Operand:
        """The position of each record, or whether its columns are sound."""
        if isinstance(asked, RecordNumber):
            return Operand(places)
        sound = np.ones(len(places), bool)
        for name in asked.columns:
            bad = columns[name].bad
            sound = sound if bad is None else sound & ~bad
        return Operand(sound)

    def _operand(self, of: Column, column: Ingested) -> Operand:
        """A column as expressions compute with it."""
        valid = column.valid.astype(bool) if len(column.valid) else None
        match of.type.kind:
            case Kind.STRING:
                return Operand(column.strings, valid)
            case Kind.INET:
                component = inet6_component(of.name)
                codes = None if column.inet6 is None else column.inet6 - component.code_base
                return Operand(decoded(column.numbers, codes, self.dictionaries[component]), valid)
            case Kind.BOOLEAN:
                return Operand(column.numbers != 0, valid)
        return Operand(column.numbers if column.floats is None else column.floats, valid)


def _of_records(expressions: Iterable[Expression]) -> tuple[RecordNumber | Sound, ...]:
    """What is asked of records besides their columns, each once."""
    found = (part for one in expressions for part in walk(one) if isinstance(part, RecordNumber | Sound))
    return tuple(dict.fromkeys(found))


def _read(expressions: Iterable[Expression]) -> tuple[Column, ...]:
    """The columns of the stream that expressions read, each once."""
    found = (part for expression in expressions for part in walk(expression) if isinstance(part, Column))
    return tuple(dict.fromkeys(found))


def _given(batch: pa.RecordBatch) -> Faults:
    """Faults of records that the source tells: those it could not read, and those it found to be wrong."""
    faults: Faults = []
    for flag, prefix in ((UNREADABLE, "unreadable record: "), (FAULT, "")):
        if flag in batch.schema.names:
            reasons = batch.column(flag)
            for reason in reasons.unique().drop_null().to_pylist():
                marked = flags(pc.equal(reasons, reason))
                faults.append((prefix + reason, marked))
    return faults


def _readable(batch: pa.RecordBatch) -> Array | None:
    if UNREADABLE not in batch.schema.names:
        return None
    return truths(batch.column(UNREADABLE).is_null())


def _any_of(faults: Faults, rows: int) -> Array:
    found = np.zeros(rows, bool)
    for _, marked in faults:
        found |= marked
    return found
