"""Groups of what was read, made three times over, and one beside the other.

    once each         ──► exact_x        each group has a row in `weighted` and in `once`;
    weight times      ──► x              in `rest` only where something of it was not read
    weight − 1 times  ──► estimated_x of counts and sums
    lists of values   ──► error_x of counts, sums and averages

Queries on one stream and joins call their columns each in their own way; here they say how (`Asked`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.logical.types import Kind, Type
from penstock.testing.oracle.answers import FLOAT_TOLERANCE, NEAR_KEY, RELATIVE_KEY, ZERO_KEY, greatest
from penstock.testing.oracle.database import run
from penstock.testing.oracle.duck import SQL_TYPES, Value
from penstock.testing.oracle.triage.errors import Error, Part, error_of_average, error_of_total

ERROR_TOLERANCE = 1e-6  # relative, of standard errors
NOISE = 1e-7  # of values, which a small error is a difference of: the root of what doubles can tell
TOTALS, WITH_ERROR = ("count", "sum"), ("count", "sum", "avg")


@dataclass(frozen=True)
class Asked:
    """An output with aggregates. Where it is one of them alone, `function` and its `column` in the groups."""

    name: str
    sql: str
    type: Type
    function: str = ""
    column: str = ""


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
    chosen = [f"CAST({one.sql} AS {SQL_TYPES[one.type.kind]}) AS exact{i}" for i, one in enumerate(asked)]
    once = run(f"SELECT {', '.join([*by, *chosen])} FROM input", made.parameters, input=made.once)
    columns = list(dict.fromkeys(one.column for one in asked if one.function in WITH_ERROR))
    rest, parts = (table.select([*by, *columns]) for table in (made.rest, made.parts))
    groups = _beside(made.weighted, once, by)
    groups = _beside(groups, rest.rename_columns([*by, *(f"rest_{name}" for name in columns)]), by)
    groups = _beside(groups, parts.rename_columns([*by, *(f"parts_{name}" for name in columns)]), by)
    estimates = "".join(f", {_estimate(one, f'exact{i}')} AS estimated{i}" for i, one in enumerate(asked))
    groups = run(f"SELECT *{estimates} FROM input", {}, input=groups)
    scales = {}
    for i, one in enumerate(asked):
        errors = _errors(groups, by[0], one, picked)
        groups = groups.append_column(f"error{i}", pa.array([error.value for error in errors], pa.float64()))
        scales[one.name] = max((error.scale for error in errors), default=0.0)
    return groups, scales


def _beside(groups: pa.Table, other: pa.Table, by: list[str]) -> pa.Table:
    """More columns of the same groups; NULL where the other table has no such group."""
    ties = " AND ".join(f"g.{name} IS NOT DISTINCT FROM o.{name}" for name in by)
    added = "".join(f", o.{name}" for name in other.schema.names if name not in by)
    return run(f"SELECT g.*{added} FROM groups g LEFT JOIN other o ON {ties}", {}, groups=groups, other=other)


def _estimate(one: Asked, exact: str) -> str:
    """What counts and sums are over all that was not read."""
    if one.function not in TOTALS:
        return f"CAST(NULL AS {SQL_TYPES[one.type.kind]})"
    odd = ""
    if one.type.kind is Kind.DOUBLE:  # infinities and NaN
        difference = f"if({one.column} = {exact} AND NOT isnan({exact}), 0.0, {one.column} - {exact})"
        odd = f" WHEN NOT (isfinite({one.column}) AND isfinite({exact})) THEN {difference}"
    return f"CASE WHEN {one.column} IS NULL THEN NULL{odd} ELSE coalesce(rest_{one.column}, 0) END"


def _errors(groups: pa.Table, window: str, one: Asked, picked: Picked) -> list[Error]:
    if one.function not in WITH_ERROR:
        return [Error(None)] * groups.num_rows
    error_of = error_of_average if one.function == "avg" else error_of_total
    lists = groups.column(f"parts_{one.column}").to_pylist()
    return [
        Error(None) if number in picked.holed else error_of(map(_part, parts or ()), picked.sizes.get(number, {}))
        for number, parts in zip(groups.column(window).to_pylist(), lists, strict=True)
    ]


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
