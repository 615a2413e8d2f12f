"""Random windows as SQL text: tumbling, sliding, with gaps, landmark, of rows, and the Gigascope form.

Windows that nobody needs to wait for: a query emits no more than `MOST_WINDOWS` of them, and the sum over windows
of the records in them stays below a bound that the caller gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from penstock.testing.apps.randomness import Dice

MOST_WINDOWS = 400  # of one query: more says nothing new and only takes time
MINUTES = (1, 2, 3, 5, 60, 1_440, 10_000)
SECOND = 1_000_000
# All divisible by six, so that halves and thirds of them are whole.
SECONDS = (0.003, 0.12, 0.6, 1.2, 6, 18, 60, 90, 300, 3_600, 10_800, 43_200, 86_400, 604_800, 60 * 86_400)
SLIDES = tuple(round(seconds * SECOND) for seconds in SECONDS)
SHORTEST = 6  # of the slides that fit; longer ones hold everything in one window
UNITS = {
    "microseconds": 1,
    "us": 1,
    "milliseconds": 1_000,
    "ms": 1_000,
    "seconds": SECOND,
    "sec": SECOND,
    "minutes": 60 * SECOND,
    "min": 60 * SECOND,
    "hours": 3_600 * SECOND,
    "h": 3_600 * SECOND,
    "days": 86_400 * SECOND,
}
DIVIDING = tuple(map(Fraction, (2, 3, 4, 6, 10)))
CUTTING = (Fraction(3, 2), Fraction(5, 3), Fraction(5, 2), Fraction(13, 6), Fraction(22, 3))
GAPS = (Fraction(1, 2), Fraction(1, 3), Fraction(5, 6))


@dataclass(frozen=True)
class Extent:
    """What a window is laid over: how many records, from the least to the greatest time in microseconds."""

    rows: int
    reach: int
    pairs: int  # the most records in all windows together
    of_rows: bool = True  # whether windows of rows are allowed


@dataclass(frozen=True)
class WindowText:
    """A window in its places in a SELECT; `bucket` is the name of the Gigascope time bucket, if there is one."""

    bracket: str = ""
    every: str = ""
    group: str = ""
    bucket: str = ""
    windows: int = 1
    pairs: int = 0
    length: int = 0  # microseconds that a window may reach beyond its records
    of_rows: bool = False
    landmark: bool = False


def random_window(dice: Dice, extent: Extent, time: str = "ts", bucket: str = "tb") -> WindowText:
    """One that fits the extent; `time` is the stream's time column, `bucket` what a bucket of it is called."""
    kind = dice.pick(("tumbling",) * 4 + ("bucket",) * 2 + ("sliding",) * 4 + ("gaps", "landmark", "landmark", "rows"))
    found: WindowText | None = None
    match kind:
        case "bucket":
            found = _bucket(dice, extent, time, bucket)
        case "sliding":
            found = _time_window(dice, extent, dice.pick((DIVIDING, CUTTING)))
        case "gaps":
            found = _time_window(dice, extent, GAPS)
        case "landmark":
            found = _landmark(dice, extent)
        case "rows" if extent.of_rows:
            found = _rows(dice, extent)
    found = found or _time_window(dice, extent, (Fraction(1),))
    assert found is not None, "the longest slide fits every stream"
    return found


def spelled(dice: Dice, microseconds: int) -> str:
    """A duration in one of the units in which it is short."""
    choices = []
    for unit, size in UNITS.items():
        count = Fraction(microseconds, size)
        if 1000 % count.denominator == 0 and count < 1_000_000:
            choices.append(f"{float(count):.10g} {unit}")
    return dice.pick(choices)


def _time_window(dice: Dice, extent: Extent, ratios: tuple[Fraction, ...]) -> WindowText | None:
    """RANGE = SLIDE · one of the ratios."""
    ratio = dice.pick(ratios)
    fitting = [slide for slide in SLIDES if _fits(extent, slide, ratio)]
    if not fitting:
        return None
    slide = dice.pick(fitting[:SHORTEST])
    size = int(slide * ratio)
    windows = extent.reach // slide + int(ratio) + 2
    one, other = spelled(dice, size), spelled(dice, slide)
    brackets = [(f" [RANGE '{one}' SLIDE '{other}']", ""), (f" [range by '{one}' slide by '{other}']", "")]
    brackets.append((f" [WINDOW '{one}']", f"EVERY {other}"))
    if ratio == 1:
        brackets += [(f" [WINDOW {one}]", ""), ("", f"EVERY {one}"), (f" [WINDOW '{one}']", "")]
    bracket, every = dice.pick(brackets)
    return WindowText(bracket, every, windows=windows, pairs=extent.rows * -(-size // slide), length=size)


def _fits(extent: Extent, slide: int, ratio: Fraction) -> bool:
    windows = extent.reach // slide + int(ratio) + 2
    return windows <= MOST_WINDOWS and extent.rows * ratio <= max(extent.pairs, extent.rows)


def _landmark(dice: Dice, extent: Extent) -> WindowText | None:
    fitting = [s for s in SLIDES if _landmark_windows(extent, s) <= 60]
    fitting = [s for s in fitting if _landmark_windows(extent, s) * extent.rows <= extent.pairs]
    if not fitting:
        return None
    slide = dice.pick(fitting[:SHORTEST])
    windows = _landmark_windows(extent, slide)
    every = f"EVERY {spelled(dice, slide)}"
    return WindowText(
        " [WINDOW UNTIL NOW]", every, windows=windows, pairs=windows * extent.rows, length=slide, landmark=True
    )


def _landmark_windows(extent: Extent, slide: int) -> int:
    return extent.reach // slide + 2


def _rows(dice: Dice, extent: Extent) -> WindowText | None:
    rows = max(extent.rows, 1)
    slide = max(dice.pick((1, 2, 3, 10, 64, 1_000)), -(-rows // MOST_WINDOWS))
    size = max(1, int(slide * dice.pick((Fraction(1, 2), Fraction(1), Fraction(1), *CUTTING, Fraction(4)))))
    if rows * -(-size // slide) > max(extent.pairs, rows):
        return None
    windows = (rows + size) // slide + 2
    if dice.chance(0.3):
        # The window of the last n records slides by n.
        return WindowText(f" [ROWS {slide}]", windows=windows, pairs=rows, of_rows=True)
    unit = dice.pick(("", " ROWS"))
    bracket = f" [ROWS {size} SLIDE {slide}{unit}]"
    return WindowText(bracket, windows=windows, pairs=rows * -(-size // slide), of_rows=True)


def _bucket(dice: Dice, extent: Extent, time: str, name: str) -> WindowText | None:
    fitting = [m for m in MINUTES if extent.reach // (m * 60 * SECOND) + 2 <= MOST_WINDOWS]
    if not fitting:
        return None
    minutes = dice.pick(fitting)
    length = minutes * 60 * SECOND
    windows = extent.reach // length + 2
    group = f"{time}/{minutes} AS {name}"
    return WindowText(group=group, bucket=name, windows=windows, pairs=extent.rows, length=length)
