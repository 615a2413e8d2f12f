"""Random windows of the sides of one query: their ranges are equal modulo the slide."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.joins.spec import LANDMARK, RANGE, ROWS, WindowSpec

PARTS = (2, 3, 5, 8, 12, 20, 30)  # slides in a span
KINDS = (RANGE,) * 8 + (LANDMARK, ROWS)
SIZES = (1, 2, 3, 10, 50)


def random_slide(dice: Dice, span: int) -> int:
    """A whole number of milliseconds, divisible by six."""
    return max(6_000, span // dice.pick(PARTS) // 6_000 * 6_000)


def random_windows(dice: Dice, slide: int, rows_allowed: Sequence[bool], landmarks: bool = True) -> list[WindowSpec]:
    """One per side; `rows_allowed` says which may be of rows."""
    kinds = [dice.pick(KINDS) for _ in rows_allowed]
    if not landmarks:
        kinds = [RANGE if kind == LANDMARK else kind for kind in kinds]
    kinds = [RANGE if kind == ROWS and not fine else kind for kind, fine in zip(kinds, rows_allowed, strict=True)]
    if dice.chance(0.06):
        kinds = [LANDMARK if landmarks else RANGE] * len(kinds)
    whole = LANDMARK in kinds or dice.chance(0.6)
    rest = 0 if whole else slide // dice.pick((2, 3, 6)) * dice.pick((1, 1, 1))
    same = dice.chance(0.4)
    steps = dice.pick((0, 1, 1, 2, 3)) if rest else dice.pick((1, 1, 2, 3, 5))
    found = []
    for kind in kinds:
        if kind == RANGE:
            if not same:
                steps = dice.between(0, 3) if rest else dice.between(1, 4)
            found.append(WindowSpec(RANGE, rest + steps * slide))
        else:
            found.append(WindowSpec(kind, dice.pick(SIZES) if kind == ROWS else 0))
    return found
