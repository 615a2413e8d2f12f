"""Which rows of a table belong to which records of a stream.

A table is a bag: every row whose equalities and ranges hold belongs to the record, duplicates and all.  With
`match = 'longest'` only those with the shortest range of addresses stay, and the table's own conditions are asked of
these: the owner of an address is whoever has the longest prefix, whether or not that is the owner that is looked for.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.testing.oracle.database import run
from penstock.testing.oracle.joins.sides import ROW
from penstock.testing.oracle.joins.spec import TableSide
from penstock.testing.oracle.joins.terms import compare

WIDTH = "oracle_width"
LOWER, UPPER = (">", ">="), ("<", "<=")


def matches(table: TableSide, longest: bool, side: pa.Table, rows: pa.Table) -> pa.Table:
    """(record, row) of all that belong together; NULL equals nothing."""
    if longest:
        rows = rows.append_column(WIDTH, _widths(table, rows))
    ties = " AND ".join(compare(tie.operator, tie.record, tie.row).sql for tie in table.ties)
    one, other = f'"{table.to}"', f'"{table.alias}"'
    place = f"rank() OVER (PARTITION BY {one}.{ROW} ORDER BY {other}.{WIDTH})" if longest else "1"
    own = " AND ".join(term.sql for term in table.own) or "true"
    found = f"SELECT {one}.{ROW} AS record, {other}.{ROW} AS row, {place} AS place, ({own}) AS own"
    text = f"SELECT record, row FROM ({found} FROM side {one} JOIN rows {other} ON {ties}) WHERE place = 1 AND own"
    return run(text, {}, side=side, rows=rows)


def _widths(table: TableSide, rows: pa.Table) -> pa.Array:
    """How many addresses a row's range has, as text that sorts so."""
    low = next(tie.row for tie in table.ties if tie.operator in LOWER)
    high = next(tie for tie in table.ties if tie.operator in UPPER)
    (lower,), (upper,) = low.uses, high.row.uses
    ends = zip(rows.column(lower.stored).to_pylist(), rows.column(upper.stored).to_pylist(), strict=True)
    more = 1 if high.operator == "<=" else 0
    # A code is the version and hexadecimal digits; a range that ends in IPv6 may begin in IPv4.
    return pa.array([None if a is None or b is None else f"{_place(b) - _place(a) + more:034x}" for a, b in ends])


def _place(code: str) -> int:
    return int(code[1:], 16) if code[0] == "4" else (1 << 32) + int(code[1:], 16)
