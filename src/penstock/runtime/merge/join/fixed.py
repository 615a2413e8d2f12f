"""Rows of a table as a side of a join: in lists by the class that records belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from penstock.kernels.dictionary import Dictionary
from penstock.logical.expressions import Column
from penstock.logical.query import TableSide, side_column
from penstock.relations.component import Component
from penstock.runtime.expressions.lookups import classes_of, table_of, table_operand
from penstock.runtime.merge.join.computed import column_of_values

Array = np.ndarray


@dataclass(frozen=True)
class TableRows:
    """A table in a join: rows[starts[c] : starts[c + 1]] belong to records of class c. The last class is of records
    without a row; it has one, the last of the columns, where they stay (LEFT JOIN). `components` are the columns that
    the join asks for, by the names that it calls them by."""

    side: TableSide
    starts: Array
    rows: Array
    components: dict[Component, Array]
    dictionaries: dict[Component, Dictionary]


def table_rows(side: TableSide, columns: Iterable[Column]) -> TableRows:
    """The rows of a table with these columns of the join."""
    classes = classes_of(side.match)
    data = table_of(side.match.digest)
    nowhere = data.num_rows  # the row of those that have none
    starts = np.append(classes.starts, classes.starts[-1] + int(side.outer))
    rows = np.append(classes.rows, [nowhere] if side.outer else np.empty(0, np.int64)).astype(np.int64)
    components: dict[Component, Array] = {}
    dictionaries: dict[Component, Dictionary] = {}
    for column in columns:
        name = column.name.removeprefix(side_column(side.alias, ""))
        made = column_of_values(column, table_operand(data, name, column.type), nowhere)
        components |= {one: np.append(values, made.missing[one]) for one, values in made.components.items()}
        dictionaries |= made.dictionaries
    return TableRows(side, starts, rows, components, dictionaries)
