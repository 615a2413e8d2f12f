"""Typed, immutable expressions: what a WHERE, a HAVING or a select list computes.

Built by `logical.resolve.app` from the parsed text; evaluated on Arrow arrays by `runtime.expressions.evaluate`.
Comparisons follow the engine's order: NaN equals NaN and is greater than every number, -0.0 equals 0.0,
strings compare as UTF-8 bytes, NULL gives NULL (three-valued logic).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.logical.types import BIGINT, BOOLEAN, PREFIX, TIMESTAMP, Type


@dataclass(frozen=True)
class Column:
    """A column of the stream."""

    name: str
    type: Type

    def __hash__(self) -> int:
        return hash(self.name)  # tells columns apart, and takes a third of the time


@dataclass(frozen=True)
class Prefix:
    """`src/24`: the first `length` bits of an address."""

    column: Column
    length: int
    type: Type = PREFIX


@dataclass(frozen=True)
class Computed:
    """An expression over the record's columns that is grouped by or aggregated: a column made by the query.

    `name` is its canonical text after a '='; select list and HAVING refer to it as they do to a column.
    """

    name: str
    expression: Expression
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant. TIMESTAMP literals are int microseconds, INET literals canonical text; None is NULL."""

    value: bool | int | float | str | None
    type: Type


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function, by its canonical name (`aggregates.registry`), of a column or an expression; count(*) has
    no argument. `distinct`: of each value once. `parameters` are constants, like the 0.99 of a percentile. Only values
    of records for which `test` is true count (FILTER of addresses; of all else the argument is NULL for the others)."""

    function: str
    argument: Column | Prefix | Computed | None
    type: Type
    distinct: bool = False
    parameters: tuple[Literal, ...] = ()
    test: Column | Computed | None = None


ITEM, COUNT, UNDERCOUNT = "item", "count", "undercount"


@dataclass(frozen=True)
class Listed:
    """A column of the rows that an aggregate gives (`frequent`): the `item`, its `count`, or its `undercount`."""

    aggregate: Aggregate
    what: str
    type: Type


@dataclass(frozen=True)
class Bucket:
    """The Gigascope time bucket `time/5 AS tb`: number of the window, window_start / length."""

    type: Type = BIGINT


@dataclass(frozen=True)
class WindowEnd:
    """The end of the window: what a bare time column is beside aggregates of everything."""

    type: Type = TIMESTAMP


@dataclass(frozen=True)
class RecordNumber:
    """The position of the record in its stream."""

    type: Type = BIGINT


@dataclass(frozen=True)
class Sound:
    """Whether the record has no value in these columns that does not fit its type."""

    columns: tuple[str, ...]
    type: Type = BOOLEAN


EXACT, ESTIMATED, ERROR = "exact", "estimated", "error"


@dataclass(frozen=True)
class Triaged:
    """Of an expression of aggregates, where a burst may leave records unread: its value over the records that were read
    (`exact`), what is `estimated` for all others, or one standard `error` of the sum of both."""

    of: Expression
    what: str
    type: Type


@dataclass(frozen=True)
class Arithmetic:
    """+ - * / % on numbers. `/` gives DOUBLE (division by zero gives NULL); the others keep integers."""

    operator: str
    left: Expression
    right: Expression
    type: Type


@dataclass(frozen=True)
class Comparison:
    """= <> < <= > >= of two operands of comparable types."""

    operator: str
    left: Expression
    right: Expression
    type: Type = BOOLEAN


@dataclass(frozen=True)
class Logic:
    """AND or OR of two or more operands."""

    operator: str
    operands: tuple[Expression, ...]
    type: Type = BOOLEAN


@dataclass(frozen=True)
class Not:
    operand: Expression
    type: Type = BOOLEAN


@dataclass(frozen=True)
class IsNull:
    operand: Expression
    type: Type = BOOLEAN


@dataclass(frozen=True)
class InList:
    """x IN (literals); a NULL among them makes a miss NULL, as in SQL."""

    operand: Expression
    items: tuple[Literal, ...]
    type: Type = BOOLEAN


@dataclass(frozen=True)
class Like:
    """x LIKE pattern, with % and _; `escape` is a character that makes the next one plain, or none."""

    operand: Expression
    pattern: str
    type: Type = BOOLEAN
    escape: str = ""


@dataclass(frozen=True)
class Case:
    """CASE WHEN ... THEN ... ELSE ... END: the value of the first condition that is true; `default` None: NULL."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None
    type: Type


@dataclass(frozen=True)
class Cast:
    """CAST(x AS type); what does not fit is NULL."""

    operand: Expression
    type: Type


@dataclass(frozen=True)
class Call:
    """A deterministic scalar function by its canonical name, see `logical.values.functions`."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True)
class Bound:
    """A range condition of a record's value and a row of a table: value `operator` bound."""

    operator: str
    bound: Expression


@dataclass(frozen=True)
class Match:
    """Which rows of a table belong to a record. The second of each of `equals`, bounds and `where` are of the table's
    columns; all else is of the record's.

    `value` is what the `bounds` are about. `longest`: of the rows whose range holds it, those with the shortest
    range; `where` is asked of these alone. `single`: the query counts on one row at most, whatever the table will hold.
    """

    table: str
    digest: str  # of the table's content; of one that is read again, of its name and columns
    equals: tuple[tuple[Expression, Expression], ...] = ()
    value: Expression | None = None
    bounds: tuple[Bound, ...] = ()
    where: Expression | None = None
    longest: bool = False
    single: bool = False


@dataclass(frozen=True)
class Lookup:
    """What a record finds in a table: `column` of the only row that matches it; without a column, the number of the
    *class* of rows that do. NULL where none does."""

    match: Match
    column: str | None
    type: Type


Expression = (
    Column
    | Prefix
    | Computed
    | Literal
    | Aggregate
    | Listed
    | Bucket
    | WindowEnd
    | RecordNumber
    | Sound
    | Triaged
    | Arithmetic
    | Comparison
    | Logic
    | Not
    | IsNull
    | InList
    | Like
    | Case
    | Cast
    | Call
    | Lookup
)


def children(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return (left, right)
        case Logic(_, operands):
            return operands
        case Not(operand) | IsNull(operand) | InList(operand) | Like(operand) | Cast(operand):
            return (operand,)
        case Computed(_, inner):
            return (inner,)
        case Call(_, arguments):
            return arguments
        case Case(branches, default):
            parts = tuple(part for branch in branches for part in branch)
            return parts if default is None else (*parts, default)
        case Prefix(column):
            return (column,)
        case Listed(aggregate):
            return (aggregate,)
        case Triaged(of):
            return (of,)
        case Lookup(match):
            return record_parts(match)
        case Aggregate(_, argument, test=test):
            return tuple(part for part in (argument, test) if part is not None)
    return ()


def record_parts(match: Match) -> tuple[Expression, ...]:
    """What a record is asked, to find its rows in a table."""
    asked = tuple(of for of, _ in match.equals)
    return asked if match.value is None else (*asked, match.value)


def walk(expression: Expression) -> Iterator[Expression]:
    yield expression
    for child in children(expression):
        yield from walk(child)


def columns(expression: Expression | None) -> frozenset[str]:
    """Names of the stream's columns that the expression reads."""
    if expression is None:
        return frozenset()
    return frozenset(e.name for e in walk(expression) if isinstance(e, Column))
