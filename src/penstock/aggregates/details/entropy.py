"""entropy: how evenly the records of a group spread over their values, in bits."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.aggregates.base import FinishedValues
from penstock.aggregates.details.function import DetailFunction, DetailRows, Parameter
from penstock.logical.types import DOUBLE, Type


class Entropy(DetailFunction):
    name = "entropy"

    def result(self, argument: Type) -> Type | None:
        return DOUBLE

    def squeeze(self, rows: DetailRows) -> DetailRows:
        """Values that are equally frequent count alike."""
        import numpy as np

        from penstock.kernels.tables.details import by_group

        if not len(rows):
            return rows
        order = by_group(rows.at, rows.counts)
        at, counts = rows.at[order], rows.counts[order]
        begins = np.flatnonzero(np.concatenate([[True], (at[1:] != at[:-1]) | (counts[1:] != counts[:-1])]))
        weights = np.add.reduceat(rows.weights[order], begins)
        return DetailRows(at[begins], rows.numbers[order][begins], counts[begins], weights, {})

    def reduce(self, rows: DetailRows, groups: int, argument: Type, parameters: Sequence[Parameter]) -> FinishedValues:
        """By ascending count, so that the order in which rows come does not show in the last digit."""
        import numpy as np

        from penstock.kernels.tables.details import add_entropy

        rows = self.squeeze(rows)
        total = np.bincount(rows.at, rows.counts * rows.weights, groups).astype(np.int64)
        bits = np.zeros(groups)
        add_entropy(rows.at, rows.counts, rows.weights, total, bits)
        valid = total > 0
        return FinishedValues(bits, None if valid.all() else valid)


ENTROPY = Entropy()
