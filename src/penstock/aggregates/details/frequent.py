"""frequent and approx_frequent: the values that at least a share s of a group's records have, a row for each.

Of an exact one all values are kept. An approximate one forgets rare values whenever a run of a task is written (lossy
counting, Manku and Motwani 2002, a run a bucket): of a group with n values in the run, those with at most t = ⌊εn⌋
records go. What is left carries t (`spared`), and so does the group's row of NULL, which also counts the records that
were dropped. So of every value it is known by how much at most its count falls short: by all t of the group, less those
of the runs that it was in. That is at most εN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING

from penstock.aggregates.base import Accumulator, BadParameter, Facts, FinishedValues, ParameterRule
from penstock.aggregates.details.function import Detail, DetailFunction, DetailRows, Loss, Parameter
from penstock.aggregates.details.percentiles import DIGITS, is_share
from penstock.lang.sizes import bytes_of
from penstock.logical.expressions import Column, Computed, Prefix
from penstock.logical.query import column_of
from penstock.logical.types import Type

if TYPE_CHECKING:
    from penstock.aggregates.base import Words
    from penstock.aggregates.values import Into, Values
    from penstock.kernels.dictionary import Dictionary

TENTH = Decimal("0.1")  # of the support: how much is lost unless it is said
SUPPORT = ParameterRule(
    "support", f"a number above 0 and at most 1, with at most {DIGITS} digits after the point",
    lambda value: is_share(value) and value > 0,
)  # fmt: skip
LOST = ParameterRule(
    "error", "a number above 0 and below the support, or the memory of a task as text, like '64KiB'",
    lambda value: isinstance(value, str) or (is_share(value) and value > 0), 0.0,
)  # fmt: skip
ENTRY = 64  # bytes of a value in a leaf, roughly
PER_ENTRY = 7  # ε = 7/B where nothing is known of the stream


@dataclass(frozen=True)
class Noted(Accumulator):
    """A number that is noted when a run is written, and added up from then on; records do not change it."""

    kind: str

    def words(self, facts: Facts) -> int:
        return 1

    def adds(self, facts: Facts) -> bool:
        return True

    def fold(self, into: Into, facts: Facts, values: Values, dictionary: Dictionary | None) -> None:
        """Nothing is noted yet."""

    def fold_partials(self, into: Into, facts: Facts, words: Words, dictionary: Dictionary | None) -> None:
        from penstock.aggregates.base import kernels

        kernels().add_sum(*into.words, into.rows, words[0], into.everything)


SPARED, DROPPED = Noted("spared"), Noted("dropped")


@dataclass(frozen=True)
class Frequent(DetailFunction):
    """`loses`: whether rare values are forgotten."""

    name: str
    loses: bool
    lists = True

    @property
    def parameters(self) -> tuple[ParameterRule, ...]:  # type: ignore[override]
        return (SUPPORT, LOST) if self.loses else (SUPPORT,)

    def result(self, argument: Type) -> Type | None:
        return argument

    def completed(self, given: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """(support, ε, most values of a leaf or 0)."""
        support, *rest = super().completed(given)
        if not self.loses:
            return (support, 0, 0)
        exact, cap = Decimal(repr(support)), 0
        error = rest[0] if len(given) > 1 else float(_rounded(exact * TENTH))
        if isinstance(error, str):
            memory = bytes_of(error)
            if memory is None:
                raise BadParameter(1, f"'{error}' is no size", "write it like '64KiB'")
            cap = memory // ENTRY
            error = float(_rounded(Decimal(PER_ENTRY) / max(1, cap), ROUND_UP))
            if cap == 0 or Decimal(repr(error)) >= exact:
                least = int(PER_ENTRY / exact + 1) * ENTRY
                what = f"{rest[0]!r} is too little for a support of {support}"
                raise BadParameter(1, what, f"give at least {least} bytes")
        assert isinstance(error, int | float)
        if Decimal(repr(error)) >= exact:
            what = f"the error {error} must be below the support {support}"
            raise BadParameter(1, what, "leave it away: it is a tenth then")
        return (support, error, cap)

    def detail(self, argument: Column | Prefix | Computed, parameters: Sequence[Parameter]) -> Detail:
        _, error, cap = parameters
        if not self.loses:
            return Detail(argument)
        column = column_of(argument)
        assert isinstance(cap, int)
        return Detail(argument, (), (SPARED.state(column), DROPPED.state(column)), Loss(repr(error), cap))

    def reduce(self, rows: DetailRows, groups: int, argument: Type, parameters: Sequence[Parameter]) -> FinishedValues:
        raise AssertionError(f"{self.name} gives rows")


def _rounded(value: Decimal, how: str = "ROUND_DOWN") -> Decimal:
    """To as many digits as shares may have; never to nothing."""
    unit = Decimal(1).scaleb(-DIGITS)
    return max(unit, value.quantize(unit, rounding=how))


FREQUENT, APPROX_FREQUENT = Frequent("frequent", loses=False), Frequent("approx_frequent", loses=True)
