"""Assertions on results and accounts: order-independent, with a diff that names the rows.

Rows are compared as multisets.  Everything but floating-point values must be equal; those agree to 1e-9 relative
(NaN equals NaN, -0.0 equals 0.0), found by pairing rows of equal exact values in order of their floats.  A variance
that is truly zero may be off by what the oracle says in the column's metadata, and so may an estimated error.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.state.account import by_side
from penstock.testing.oracle.answers import FLOAT_TOLERANCE, NEAR_KEY, RELATIVE_KEY, ZERO_KEY
from penstock.testing.oracle.expected import ExpectedAccount

SHOWN = 5
PAIRS = 4_000_000
PARTS = ("exact", "triaged", "late", "filtered", "malformed")

Row = tuple[Any, ...]
Groups = dict[Row, list[Row]]
Allowed = tuple[tuple[float, float, float], ...]  # by column how far a value may be off: relative, from zero, anyway


def assert_same_rows(actual: pa.Table, expected: pa.Table, context: str) -> None:
    """Fail with a readable diff unless both tables have the same columns, types and multiset of rows."""
    if actual.schema.names != expected.schema.names:
        raise AssertionError(f"{context}: columns are {actual.schema.names}, expected {expected.schema.names}")
    kinds = [(a.name, a.type, e.type) for a, e in zip(actual.schema, expected.schema, strict=True) if a.type != e.type]
    if kinds:
        name, theirs, ours = kinds[0]
        raise AssertionError(f"{context}: column '{name}' is {theirs}, expected {ours}")
    unexpected, missing = _differences(actual, expected)
    if unexpected or missing:
        raise AssertionError(_diff(context, actual, expected, unexpected, missing))


def assert_account_closes(summary: Mapping[str, Any]) -> None:
    """Fail unless input = exact + triaged + late + filtered + malformed, in every account of a run's summary."""
    for place, account in _accounts(summary):
        numbers = {part: account.get(part) for part in ("input", *PARTS)}
        wrong = [part for part, number in numbers.items() if type(number) is not int or number < 0]
        if wrong:
            raise AssertionError(f"{place}: '{wrong[0]}' is {numbers[wrong[0]]!r}, not a count")
        total = sum(account[part] for part in PARTS)
        if account["input"] != total:
            raise AssertionError(f"{place}: input {account['input']} but the parts give {total}: {numbers}")


def assert_same_account(actual: Mapping[str, Any], expected: ExpectedAccount, context: str) -> None:
    """Fail unless every part of the account is as expected."""
    shown = {part: actual.get(part) for part in ("input", *PARTS)}
    if shown != expected.as_dict():
        raise AssertionError(f"{context}: account is {shown}, expected {expected.as_dict()}")


def assert_same_windows(
    actual: Sequence[Mapping[str, int]], expected: Sequence[Mapping[str, int]], context: str
) -> None:
    """Fail unless the same windows, in order, have the same account; names the first that differs."""
    for ours, theirs in zip(expected, actual, strict=False):
        if ours != theirs:
            raise AssertionError(f"{context}: window {dict(theirs)}, expected {dict(ours)}")
    if len(actual) != len(expected):
        raise AssertionError(f"{context}: {len(actual)} windows have an account, expected {len(expected)}")


def _accounts(summary: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    whole = summary["accounting"]
    if "input" in whole:
        yield "the stream's account", whole
    else:
        for name in sorted(whole):
            yield f"account of stream '{name}'", whole[name]
    for name in sorted(summary["queries"]):
        for side, account in by_side(name, summary["queries"][name]["accounting"]):
            yield f"account of query '{side}'", account


def _differences(actual: pa.Table, expected: pa.Table) -> tuple[list[Row], list[Row]]:
    """Rows of `actual` without a partner, and rows of `expected` without one."""
    ours, theirs, allowed = _by_exact_values(expected), _by_exact_values(actual), _allowed(expected)
    unexpected: list[Row] = []
    missing: list[Row] = []
    for exact in [*ours, *(key for key in theirs if key not in ours)]:
        left, right = sorted(theirs.get(exact, []), key=_order), sorted(ours.get(exact, []), key=_order)
        paired = len(left) == len(right) and all(_close(a, b, allowed) for a, b in zip(left, right, strict=True))
        if not paired:
            extra, lacking = _unpaired(left, right, allowed)
            unexpected += extra
            missing += lacking
    return unexpected, missing


def _by_exact_values(table: pa.Table) -> Groups:
    floating = [pa.types.is_floating(field.type) for field in table.schema]
    columns = [_comparable(column) for column in table.columns]
    groups: Groups = defaultdict(list)
    rows = zip(*columns, strict=True) if columns else iter(())
    for row in rows:
        groups[tuple(v for v, f in zip(row, floating, strict=True) if not f)].append(row)
    return groups


def _allowed(expected: pa.Table) -> Allowed:
    told = [field.metadata or {} for field in expected.schema]
    return tuple(
        (float(one.get(RELATIVE_KEY, FLOAT_TOLERANCE)), float(one.get(ZERO_KEY, b"0")), float(one.get(NEAR_KEY, b"0")))
        for one in told
    )


def _comparable(column: pa.ChunkedArray) -> list[Any]:
    # Python's datetime cannot hold every timestamp; its number can.
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _order(row: Row) -> tuple[Any, ...]:
    return tuple((v is not None, v != v, 0.0 if v != v else v) for v in row if isinstance(v, float) or v is None)


def _close(actual: Row, expected: Row, allowed: Allowed) -> bool:
    return all(_same(a, b, *far) for a, b, far in zip(actual, expected, allowed, strict=True))


def _same(a: Any, b: Any, relative: float, zero: float, near: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or math.isclose(a, b, rel_tol=relative, abs_tol=zero if b == 0.0 else near)
    return bool(a == b)


def _unpaired(left: list[Row], right: list[Row], allowed: Allowed) -> tuple[list[Row], list[Row]]:
    """Pair rows off greedily: sorting alone may pair wrongly where one row is missing or several floats differ."""
    if len(left) * len(right) > PAIRS:  # a readable diff is not worth minutes
        return left, right
    lacking = list(right)
    extra = []
    for row in left:
        partner = next((other for other in lacking if _close(row, other, allowed)), None)
        if partner is None:
            extra.append(row)
        else:
            lacking.remove(partner)
    return extra, lacking


def _diff(context: str, actual: pa.Table, expected: pa.Table, unexpected: list[Row], missing: list[Row]) -> str:
    counts = f"{len(unexpected)} unexpected, {len(missing)} missing"
    lines = [
        f"{context}: {actual.num_rows} rows, expected {expected.num_rows}; {counts}",
        f"  columns: {', '.join(f'{field.name} {field.type}' for field in expected.schema)}",
    ]
    lines += _shown("unexpected", unexpected)
    lines += _shown("missing", missing)
    return "\n".join(lines)


def _shown(title: str, rows: list[Row]) -> list[str]:
    lines = [f"  {title}: {_clipped(row)}" for row in sorted(rows, key=repr)[:SHOWN]]
    return [*lines, f"  {title}: … {len(rows) - SHOWN} more"] if len(rows) > SHOWN else lines


def _clipped(row: Row) -> str:
    texts = (repr(value) for value in row)
    return "(" + ", ".join(text if len(text) <= 60 else f"{text[:57]}…" for text in texts) + ")"
