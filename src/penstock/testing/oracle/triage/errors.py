"""One standard error of what is estimated from picks, in whole numbers and fractions: only the root rounds.

    error² = Σ_k 2^k (2^k − 1) (Q − S²/n) n/(n − 1)

Over k > 0, with y what a pick adds to the group (0 where it adds nothing), S = Σ y, Q = Σ y², and n the picks of this k
in the window, of any group. (Picks of one k are taken as drawn without order from the records of their ranges; the
group is found in the n picks, so its own picks are not a sample of known size.) Of an average R the y are residuals,
value − R, and error² is divided by the square of the values that are estimated to be there.

A pick that several rows of a table belong to adds to the group once, all of them together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple


class Part(NamedTuple):
    """What one record that was read adds to a group: one row of it."""

    record: int
    step: int
    value: int | float | Fraction | None


class Error(NamedTuple):
    """`value` is None for NULL. `scale` is what rounding is measured by: the same without S, and with values instead of
    residuals, none of which makes up for another."""

    value: float | None
    scale: float = 0.0

    def times(self, factor: float) -> Error:
        return Error(None if self.value is None else self.value * factor, self.scale * factor)


def error_of_total(parts: Iterable[Part], sizes: Mapping[int, int]) -> Error:
    """Of a count or a sum; `sizes` are n by k. NULL where there is nothing but NULLs."""
    parts = list(parts)
    if all(part.value is None for part in parts):
        return Error(None)
    found = [part._replace(value=0 if part.value is None else part.value) for part in parts if part.step]
    return _odd(found, found, sizes) or _error(found, sizes, Fraction(0), 1)


def error_of_sum(summands: Sequence[tuple[Fraction, Sequence[Part]]], sizes: Mapping[int, int]) -> Error:
    """Of constants times counts and sums: a pick adds to the group all that it adds to any of them, times these."""
    picked = [part for _, parts in summands for part in parts if part.step]
    odd = _odd(picked, picked, sizes)
    if odd is not None:
        return odd
    scaled = (p._replace(value=factor * Fraction(p.value or 0)) for factor, parts in summands for p in parts)
    return _error([part for part in scaled if part.step], sizes, Fraction(0), 1)


def error_of_average(parts: Iterable[Part], sizes: Mapping[int, int]) -> Error:
    """NULL where there is nothing but NULLs."""
    found = list(parts)
    valued = [part for part in found if part.value is not None]
    if not valued:
        return Error(None)
    picked = [part for part in found if part.step]
    if not picked:
        return Error(0.0)
    odd = _odd(picked, valued, sizes)
    if odd is not None:
        return odd
    count = sum(1 << part.step for part in valued)
    mean = sum((Fraction(part.value or 0) * (1 << part.step) for part in valued), Fraction(0)) / count
    return _error(found, sizes, mean, count)


def _odd(picked: Sequence[Part], parts: Sequence[Part], sizes: Mapping[int, int]) -> Error | None:
    """Where there is no finite number: NULL of picks that are alone, NaN beyond doubles."""
    if any(sizes[part.step] == 1 for part in picked):
        return Error(None)
    squares = [float(part.value or 0) * float(part.value or 0) for part in parts]
    return None if math.isfinite(sum(squares)) else Error(math.nan)


def _error(parts: Iterable[Part], sizes: Mapping[int, int], mean: Fraction, count: int) -> Error:
    variance = scale = Fraction(0)
    for step, picks in _by_pick(parts).items():
        size = sizes[step]
        factor = Fraction((1 << step) * ((1 << step) - 1) * size, size - 1)
        residuals = [sum((value - mean for value in values), Fraction(0)) for values in picks]
        squares = sum((one * one for one in residuals), Fraction(0))
        variance += factor * (squares - sum(residuals, Fraction(0)) ** 2 / size)
        scale += factor * sum((sum(map(abs, values), Fraction(0)) ** 2 for values in picks), Fraction(0))
    return Error(_root(variance / count**2), _root(scale / count**2))


def _by_pick(parts: Iterable[Part]) -> dict[int, list[list[Fraction]]]:
    """By k > 0 the values of every pick, one for each row of it that has a value."""
    picks: dict[int, dict[int, list[Fraction]]] = defaultdict(lambda: defaultdict(list))
    for record, step, value in parts:
        if step:
            values = picks[step][record]
            if value is not None:
                values.append(Fraction(value))
    return {step: list(found.values()) for step, found in picks.items()}


def _root(square: Fraction) -> float:
    try:
        return math.sqrt(square)
    except OverflowError:  # beyond the largest double
        return math.inf
