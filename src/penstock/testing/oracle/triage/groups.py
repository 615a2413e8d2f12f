"""Groups of what was read, made three times over, and one beside the other.

    once each         ──► exact_x        each group has a row in `weighted` and in `once`;
    weight times      ──► x              in `rest` only where something of it was not read
    weight − 1 times  ──► estimated_x of counts and sums; what is made of them: x less exact_x
    lists of values   ──► error_x of counts, sums and averages, and of what adds these up

Queries on one stream and joins call their columns each in their own way; here they say how (`Asked`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.logical.types import Kind, Type
from penstock.testing.oracle.answers import FLOAT_TOLERANCE, NEAR_KEY, RELATIVE_KEY, ZERO_KEY, greatest
from penstock.testing.oracle.database import run
from penstock.testing.oracle.duck import SQL_TYPES, Value
from penstock.testing.oracle.triage.errors import Error, Part, error_of_average, error_of_sum, error_of_total
from penstock.testing.oracle.triage.linear import MEAN, TOTALS, Factors, Summand, factors_of, known_together

ERROR_TOLERANCE = 1e-6  # relative, of standard errors
NOISE = 1e-7  # of values, which a small error is a difference of: the root of what doubles can tell
WITH_ERROR = (*TOTALS, MEAN)


@dataclass(frozen=True)
class Asked:
    """An output with aggregates. Where it is one of them alone, `function` and its `column` in the groups; where it is
    made of several things, all of them are aggregates, if there are `parts`."""

    name: str
    sql: str
    type: Type
    function: str = ""
    column: str = ""
    parts: tuple[Summand, ...] = ()


@dataclass(frozen=True)
class Picked:
    """Of the whole stream by window: picks by k, and the windows of which something was dropped."""

    sizes: Mapping[int, Mapping[int, int]]
    holed: frozenset[int]

    def triaged(self, window: int) -> int:
        return sum((2**k - 1) * number for k, number in self.sizes.get(window, {}).items())


@dataclass(frozen=True)
class Made:
    """Groups by a window's number, the first of `by`, and keys. `parts` has lists of {record, step, value}, called as
    the column of the aggregate."""

    by: Sequence[str]
    weighted: pa.Table
    once: pa.Table
    rest: pa.Table
    parts: pa.Table
    parameters: Mapping[str, Value] = field(default_factory=dict)


def part_of(record: str, step: str, value: str) -> str:
    """One of the lists in `parts`, as SQL."""
    return f"list({{'record': {record}, 'step': {step}, 'value': {value}}})"


def estimated(made: Made, asked: Sequence[Asked], picked: Picked) -> tuple[pa.Table, dict[str, float]]:
    """The weighted groups with exact0, estimated0, error0, exact1 … of what is asked; scales of errors by output."""
    by = list(made.by)
    once, whole = (
        _values(made, asked, name, table) for name, table in (("exact", made.once), ("whole", made.weighted))
    )
    sums = [factors_of(one.sql, one.type, one.parts, made.parameters) for one in asked]
    columns = list(dict.fromkeys(one.column for one in asked if one.function in WITH_ERROR))
    summed = list(dict.fromkeys(part.column for factors in sums for part, _ in factors))
    groups = _beside(_beside(made.weighted, once, by), whole, by)
    groups = _beside(groups, _renamed(made.rest, by, columns, "rest"), by)
    groups = _beside(groups, _renamed(made.parts, by, list(dict.fromkeys([*columns, *summed])), "parts"), by)
    estimates = "".join(f", {_estimate(one, i, sums[i])} AS estimated{i}" for i, one in enumerate(asked))
    groups = run(f"SELECT *{estimates} FROM input", {}, input=groups)
    scales = {}
    for i, one in enumerate(asked):
        errors = _errors(groups, by[0], one, picked)
        if sums[i] and known_together(sums[i]):
            errors = _errors_of_sum(groups, by[0], i, sums[i], picked)
        groups = groups.append_column(f"error{i}", pa.array([error.value for error in errors], pa.float64()))
        scales[one.name] = max((error.scale for error in errors), default=0.0)
    return groups.drop_columns([f"whole{i}" for i in range(len(asked))]), scales


def _values(made: Made, asked: Sequence[Asked], name: str, table: pa.Table) -> pa.Table:
    """What is asked, of these groups."""
    chosen = [f"CAST({one.sql} AS {SQL_TYPES[one.type.kind]}) AS {name}{i}" for i, one in enumerate(asked)]
    return run(f"SELECT {', '.join([*made.by, *chosen])} FROM input", made.parameters, input=table)


def _renamed(table: pa.Table, by: Sequence[str], columns: Sequence[str], word: str) -> pa.Table:
    return table.select([*by, *columns]).rename_columns([*by, *(f"{word}_{name}" for name in columns)])


def _beside(groups: pa.Table, other: pa.Table, by: list[str]) -> pa.Table:
    """More columns of the same groups; NULL where the other table has no such group."""
    ties = " AND ".join(f"g.{name} IS NOT DISTINCT FROM o.{name}" for name in by)
    added = "".join(f", o.{name}" for name in other.schema.names if name not in by)
    return run(f"SELECT g.*{added} FROM groups g LEFT JOIN other o ON {ties}", {}, groups=groups, other=other)


def _estimate(one: Asked, number: int, factors: Factors) -> str:
    """What counts and sums are over all that was not read."""
    kind, exact = SQL_TYPES[one.type.kind], f"exact{number}"
    if one.function not in TOTALS:
        adds = factors and all(part.function in TOTALS for part, _ in factors)
        return _difference(f"whole{number}", exact, one.type) if adds else f"CAST(NULL AS {kind})"
    odd = ""
    if one.type.kind is Kind.DOUBLE:  # infinities and NaN
        difference = _difference(one.column, exact, one.type)
        odd = f" WHEN NOT (isfinite({one.column}) AND isfinite({exact})) THEN {difference}"
    return f"CASE WHEN {one.column} IS NULL THEN NULL{odd} ELSE coalesce(rest_{one.column}, 0) END"


def _difference(whole: str, exact: str, kind: Type) -> str:
    if kind.kind is Kind.DOUBLE:
        return f"if({whole} = {exact} AND NOT isnan({exact}), 0.0, {whole} - {exact})"
    return f"TRY_CAST(CAST({whole} AS HUGEINT) - CAST({exact} AS HUGEINT) AS BIGINT)"


def _errors(groups: pa.Table, window: str, one: Asked, picked: Picked) -> list[Error]:
    if one.function not in WITH_ERROR:
        return [Error(None)] * groups.num_rows
    error_of = error_of_average if one.function == MEAN else error_of_total
    lists = groups.column(f"parts_{one.column}").to_pylist()
    return [
        Error(None) if number in picked.holed else error_of(map(_part, parts or ()), picked.sizes.get(number, {}))
        for number, parts in zip(groups.column(window).to_pylist(), lists, strict=True)
    ]


def _errors_of_sum(groups: pa.Table, window: str, number: int, factors: Factors, picked: Picked) -> list[Error]:
    """Of what adds several up, or of one with a constant before it."""
    lists = [groups.column(f"parts_{part.column}").to_pylist() for part, _ in factors]
    found = []
    for row, (at, value) in enumerate(_pairs(groups, window, f"whole{number}")):
        sizes = picked.sizes.get(at, {})
        own = [(factor, list(map(_part, each[row] or ()))) for (_, factor), each in zip(factors, lists, strict=True)]
        if value is None or at in picked.holed:
            found.append(Error(None))
        elif factors[0][0].function == MEAN:
            found.append(error_of_average(own[0][1], sizes).times(abs(float(own[0][0]))))
        else:
            found.append(error_of_sum(own, sizes))
    return found


def _pairs(groups: pa.Table, *names: str) -> Iterator[tuple[int, float | None]]:
    return zip(*(groups.column(name).to_pylist() for name in names), strict=True)


def _part(told: Mapping[str, int]) -> Part:
    return Part(told["record"], told["step"], told["value"])


def with_tolerances(rows: pa.Table, scales: Mapping[str, float]) -> pa.Table:
    """Errors are roots of differences: one that is truly zero may be off by the root of what rounding leaves. What was
    read is as near as the whole."""
    fields = {field.name: field for field in rows.schema}
    for name, scale in scales.items():
        near = repr(NOISE * scale)
        error = {RELATIVE_KEY: repr(ERROR_TOLERANCE), ZERO_KEY: repr(ERROR_TOLERANCE * scale), NEAR_KEY: near}
        fields[f"error_{name}"] = fields[f"error_{name}"].with_metadata(error)
        fields[f"exact_{name}"] = fields[f"exact_{name}"].with_metadata(fields[name].metadata)
        if pa.types.is_floating(fields[name].type):
            little = {ZERO_KEY: repr(FLOAT_TOLERANCE * greatest(rows.column(name)))}
            fields[f"estimated_{name}"] = fields[f"estimated_{name}"].with_metadata(little)
    return rows.cast(pa.schema(list(fields.values())))
