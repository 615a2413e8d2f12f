"""How much an app would have to compute: pairs of records at all instants, were nothing late."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from penstock.testing.oracle.database import run
from penstock.testing.oracle.joins.answers import Inputs
from penstock.testing.oracle.joins.expected import inputs_of
from penstock.testing.oracle.joins.spec import AppSpec, JoinSpec, at_once
from penstock.testing.oracle.joins.terms import compare

MOST_PAIRS = 50_000  # of one query
MOST_HELD = 40_000  # records at all instants, of one query
FEW = 8  # records: not worth a look


def small_enough(app: AppSpec, data: Mapping[str, pa.Table]) -> bool:
    """Whether every query has few pairs."""
    rows = {name: table.num_rows for name, table in data.items()}
    if max(rows.values()) <= FEW:
        return True
    return all(_fits(query, inputs) for query, inputs in inputs_of(app, data, at_once(rows)))


def _fits(query: JoinSpec, inputs: Inputs) -> bool:
    if sum(table.num_rows for table in inputs.bags.values()) > MOST_HELD:
        return False
    multiples = 1.0
    for side in query.tables:
        matched = inputs.matches[side.alias]
        records = len(matched.column("record").unique())
        multiples *= matched.num_rows / records if records else 1.0
    return _pairs(query, inputs) * multiples <= MOST_PAIRS


def _pairs(query: JoinSpec, inputs: Inputs) -> float:
    """Pairs by the keys alone: records of equal keys are counted first."""
    counted, tests = [], []
    first = query.sides[0].alias
    for side in query.sides:
        names = sorted({f'"{use.stored}"' for term in query.join_keys(side.alias) for use in term.uses})
        by = ", ".join(["instant", *names])
        counted.append(f'(SELECT {by}, count(*) AS n FROM bag_{side.alias} GROUP BY {by}) "{side.alias}"')
        if side.alias != first:
            tests.append(f'"{side.alias}".instant = "{first}".instant')
    tests += [compare("=", *pair).sql for pair in query.equalities]
    product = " * ".join(f'CAST("{side.alias}".n AS DOUBLE)' for side in query.sides)
    text = (
        f"SELECT coalesce(sum({product}), 0.0) AS pairs FROM {', '.join(counted)} WHERE {' AND '.join(tests) or 'true'}"
    )
    given = {f"bag_{alias}": table for alias, table in inputs.bags.items()}
    return float(run(text, {}, **given).column("pairs")[0].as_py())
