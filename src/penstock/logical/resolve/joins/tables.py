"""Tables in a join: how records find their rows.

Where every record has one row at the most, the columns of that row are as good as columns of the record: they are
computed for each record, and nothing is joined any more. Else the rows are a side of the join, by the number of the
*class* that a record belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.logical.expressions import (
    Bound,
    Case,
    Cast,
    Column,
    Expression,
    IsNull,
    Literal,
    Lookup,
    Match,
    Not,
    columns,
    record_parts,
)
from penstock.logical.query import Field, Table, TableSide
from penstock.logical.resolve.joins.columns import JoinInput
from penstock.logical.resolve.joins.conditions import between, conjunction
from penstock.logical.rewrite import computed, inputs_read, own, rewritten, rewritten_match
from penstock.logical.types import BIGINT, DOUBLE, Kind

ONE = Literal(1, BIGINT)
SEVERAL = "some record would find several rows of it, which a table WITH (refresh = ...) must not have"


class Tables(Protocol):
    """Reads tables, and knows what is in them."""

    def read(
        self,
        name: str,
        uri: str,
        options: tuple[tuple[str, str], ...],
        fields: tuple[Field, ...] | None,
        longest: bool,
        refresh: int | None = None,
    ) -> Table:
        """Raises SourceError. `refresh`: it is read again every so many microseconds."""
        ...

    def several(self, match: Match) -> bool:
        """Whether some value has more than one row."""
        ...

    def problem(self, match: Match) -> str | None:
        """What is wrong with the table's ranges, if anything is."""
        ...


@dataclass
class TableJoins:
    """The tables of a join, resolved one after the other. `conditions` are those not yet taken by anything; `change`
    puts what records find in the place of a table's columns."""

    tables: Tables
    streams: tuple[str, ...]
    conditions: list[Expression]
    filters: list[tuple[str, Expression]]
    sides: list[TableSide]
    found: dict[str, Match]
    reads: dict[str, frozenset[str]] = field(default_factory=dict)  # by stream, what LEFT JOINs ask of its records

    def resolve(self, inputs: Sequence[JoinInput], on: dict[str, tuple[Expression, ...]], wrong: Wrong) -> None:
        """Tables whose records are known first: a table may be found by a column of another one."""
        waiting = list(inputs)
        while waiting:
            one = next((table for table in waiting if self._owner(table, on)), waiting[0])
            waiting.remove(one)
            self._resolve(one, on.get(one.alias, ()), self._owner(one, on) or self.streams[0], wrong)

    def asking(self, one: JoinInput, asked: tuple[Expression, ...]) -> str:
        """The stream whose records EXISTS of a table asks for; what asks nobody is asked of the first."""
        read = [alias for part in asked for alias in inputs_read(part) if alias in self.streams]
        return self._owner(one, {one.alias: asked}) or (read[0] if read else self.streams[0])

    def question(self, one: JoinInput, owner: str, asked: tuple[Expression, ...], wrong: Wrong) -> Match:
        """The rows of a table that a record of the owner looks for, asked by EXISTS."""
        match, rest = self._match(one, owner, asked)
        for condition in rest:
            if not inputs_read(condition) <= {owner}:
                raise wrong(one, condition)
        match = _when(match, rest)
        problem = self.tables.problem(match)
        if problem is not None:
            raise wrong(one, problem)
        return match

    def change(self, part: Expression) -> Expression | None:
        """For `rewritten`."""
        if isinstance(part, Column):
            alias, _, name = part.name.partition(".")
            if alias in self.found:
                return computed(Lookup(self.found[alias], name, part.type))
        return None

    def _owner(self, one: JoinInput, on: dict[str, tuple[Expression, ...]]) -> str | None:
        """The stream whose records find the rows: the one with the most conditions."""
        votes: dict[str, int] = {}
        for condition in (*self.conditions, *on.get(one.alias, ())):
            pair = between(rewritten(condition, self.change), one.alias)
            if pair is not None:
                (stream,) = inputs_read(pair.left)
                if stream in self.streams:
                    votes[stream] = votes.get(stream, 0) + (2 if pair.operator == "=" else 1)
        return max(votes, key=lambda stream: votes[stream]) if votes else None

    def _resolve(self, one: JoinInput, on: tuple[Expression, ...], owner: str, wrong: Wrong) -> None:
        outer = one.outer == "LEFT"
        own_conditions = on if outer else (*on, *self.conditions)
        asked = tuple(rewritten(condition, self.change) for condition in own_conditions)
        match, rest = self._match(one, owner, asked)
        if outer:
            for condition in rest:
                if not inputs_read(condition) <= {owner}:
                    raise wrong(one, condition)
            match = _when(match, rest)
            self.conditions = [rewritten(condition, self.change) for condition in self.conditions]
        else:
            self.conditions = list(rest)
        problem = self.tables.problem(match)
        if problem is not None:
            raise wrong(one, problem)
        several = self.tables.several(_owned(match, owner))
        if one.input.table is not None and one.input.table.refresh is not None:
            match = _lasting(one, match, several, wrong)
        if several:
            self.sides.append(TableSide(one.alias, owner, _owned(match, owner), outer))
        else:
            self.found[one.alias] = match
            self.conditions = [rewritten(condition, self.change) for condition in self.conditions]
        if outer:
            asked_of = frozenset().union(*map(columns, record_parts(match)))
            self.reads[owner] = self.reads.get(owner, frozenset()) | asked_of
        else:
            self.filters.append((owner, Not(IsNull(computed(Lookup(match, None, BIGINT))))))

    def _match(self, one: JoinInput, owner: str, asked: tuple[Expression, ...]) -> tuple[Match, tuple[Expression, ...]]:
        """How the owner's records find rows, and the conditions that this does not say. Ranges are of one value."""
        table = one.input.table
        assert table is not None
        equals: list[tuple[Expression, Expression]] = []
        bounds: list[Bound] = []
        where, rest = [], []
        ranged: Expression | None = None
        value: Expression | None = None
        for condition in asked:
            pair = between(condition, one.alias)
            if inputs_read(condition) == {one.alias}:
                where.append(own(condition, one.alias))
            elif pair is None or inputs_read(pair.left) != {owner}:
                rest.append(condition)
            elif pair.operator == "=":
                equals.append(_alike(pair.left, own(pair.right, one.alias)))
            elif ranged in (None, pair.left):
                ranged = pair.left
                value, bound = _alike(pair.left, own(pair.right, one.alias))
                bounds.append(Bound(pair.operator, bound))
            else:
                rest.append(condition)
        match = Match(
            table.name, table.digest, tuple(equals), value, tuple(bounds), conjunction(where),
            table.longest and bool(bounds),
        )  # fmt: skip
        return match, tuple(rest)


Wrong = Callable[[JoinInput, Expression | str], Exception]


def _lasting(one: JoinInput, match: Match, several: bool, wrong: Wrong) -> Match:
    """The match of a table that is read again. Its rows are columns of records, and never a side of the join: a window
    would see one version of them, where its records have seen several."""
    if several:
        raise wrong(one, SEVERAL)
    return replace(match, single=True)


def _owned(match: Match, owner: str) -> Match:
    """In the stream's own columns."""
    return rewritten_match(match, lambda part: own(part, owner) if isinstance(part, Column) else None)


def _alike(value: Expression, column: Expression) -> tuple[Expression, Expression]:
    """Both in their common type."""
    real = Kind.DOUBLE in (value.type.kind, column.type.kind)
    one, other = (Cast(part, DOUBLE) if real and part.type.kind is Kind.INTEGER else part for part in (value, column))
    return one, other


def _when(match: Match, conditions: Sequence[Expression]) -> Match:
    """Rows are found only by records for which these are true: other records ask for NULL."""
    test = conjunction(conditions)
    if test is None:
        return match

    def asked(value: Expression) -> Expression:
        return Case(((test, value),), None, value.type)

    # Where nothing is compared with the table, all of its rows are found, or none.
    compared = match.equals if match.equals or match.value is not None else ((ONE, ONE),)
    return replace(
        match,
        equals=tuple((asked(of), column) for of, column in compared),
        value=None if match.value is None else asked(match.value),
    )
