"""smap, Fig. 21: plans made with wrong numbers of groups, at work (Section 8.5.1).

Every relation's number of groups is off by a random error of up to a bound, each by its own; the plan is made with
these, the stream is what it is. The gain is the cost without phantoms (with the true numbers) over that of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.kit.captured import main_stream
from experiments.kit.report import (
    Claim,
    ExperimentSettings,
    Findings,
    InputAnswer,
    Line,
    Numbers,
    Panel,
    Tell,
    judged,
    table,
)
from experiments.kit.streams import PRINTED, PaperStream, nested
from experiments.models.spaces import allocate
from experiments.smap.common import PAIRS, SINGLE, bare, fixed_cost, problem, real_cost, running_lengths
from penstock.sharing.choose.choice import choose

SHOWN = (60_000, 100_000)
ERRORS = (-0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
DRAWS = 10


@dataclass(frozen=True)
class Gains:
    """Gain over no phantoms by error: all relations off by exactly that, and each by its own random part of it."""

    name: str
    memory: int
    same: tuple[float, ...]
    random: tuple[tuple[float, ...], ...]  # several draws for each error
    fixed: float  # over tables with a bucket a group, without error

    @property
    def right(self) -> float:
        return self.same[ERRORS.index(0.0)]

    @property
    def kept(self) -> float:
        """The part of the gain that is kept on average, at the worst error."""
        return min(*self.same, *(float(np.mean(draws)) for draws in self.random)) / self.right

    @property
    def least(self) -> float:
        """The least gain over all errors and draws."""
        return min(*self.same, *(gain for draws in self.random for gain in draws))


def gains(
    stream: PaperStream,
    queries: Sequence[str],
    memory: int,
    clustered: bool,
    scale: float,
    settings: ExperimentSettings,
) -> Gains:
    rng = np.random.default_rng(settings.seed)
    groups = stream.groups_by_letters()
    length = running_lengths(stream, queries, memory * scale) if clustered else (1.0,)
    true = problem(groups, queries, memory * scale, length, len(stream.rows))
    none = bare(queries)
    baseline = real_cost(stream, none, allocate("sl", none, true), true)

    def gain(factors: dict[str, float]) -> float:
        wrong = {name: max(1.0, count * factors[name]) for name, count in groups.items()}
        asked = problem(wrong, queries, memory * scale, length, len(stream.rows))
        plan = choose("gc", asked, "sl")
        return baseline / real_cost(stream, plan.configuration, plan.spaces, true)

    draws = 2 if settings.quick else DRAWS
    same = tuple(gain(dict.fromkeys(groups, 1 + error)) for error in ERRORS)
    random = tuple(
        tuple(gain({name: 1 + rng.uniform(min(error, 0), max(error, 0)) for name in groups}) for _ in range(draws))
        for error in ERRORS
    )
    small = fixed_cost(stream, queries, "b = g") / baseline * same[ERRORS.index(0.0)]
    name = stream.name if scale == 1 else f"{stream.name}, M × {scale:.1f}"
    return Gains(name, memory, same, random, small)


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    rows = min(settings.rows, 500_000)
    real = main_stream(settings, tell)
    scale = real.groups("ABCD") / PRINTED[-1]
    work = [
        (nested(rows, settings.seed, alike=4), SINGLE, False, 1.0),
        (nested(rows, settings.seed), SINGLE, False, 1.0),
        (nested(rows, settings.seed), PAIRS, False, 1.0),
        (real, PAIRS, True, scale),
    ]
    found = []
    for stream, queries, clustered, by in work[-2:] if settings.quick else work:
        for memory in SHOWN:
            tell(f"{stream.name}, {{{', '.join(queries)}}}, M = {memory:,}")
            one = gains(stream, queries, memory, clustered, by, settings)
            found.append(Gains(f"{one.name} {queries[0]}…", one.memory, one.same, one.random, one.fixed))
    return Findings(
        "plans made with wrong numbers of groups (smap, Fig. 21)",
        tuple(_claims(found)),
        (_table(found),),
        tuple(_panel([one for one in found if one.memory == memory], memory) for memory in SHOWN),
        (
            f"gain: cost without phantoms over cost of the plan, both counted; {DRAWS} draws for each error",
            "A…: queries {A, B, C, D}; AB…: queries {AB, BC, BD, CD}",
        ),
    )


def _claims(found: Sequence[Gains]) -> list[Claim]:
    return [
        judged(
            f"Fig. 21: the gain over no phantoms is kept with errors of -50 % to 50 % (M = {memory:,})",
            "quite stable",
            [
                InputAnswer(
                    one.name,
                    f"{one.right:.2f} ×, {one.kept:.0%} of it kept, {one.least / one.right:.0%} in the worst draw",
                    one.kept >= 0.8,
                )
                for one in found
                if one.memory == memory
            ],
            "no phantoms has all memory well allocated with the true numbers; holds if 80 % of the gain is kept "
            "on average at every error; numbers that contradict each other (a fine relation smaller than a coarse one) "
            "are made to agree before planning",
        )
        for memory in SHOWN
    ] + [
        judged(
            "Fig. 21: whatever the error, phantoms still beat none",
            "gain",
            [
                InputAnswer(
                    f"{one.name}, {one.memory // 1000}k",
                    f"at least {one.least:.2f} ×",
                    one.least > 1,
                )
                for one in found
            ],
            "the worst of all draws, against no phantoms with all memory well allocated",
        )
    ]


def _table(found: Sequence[Gains]) -> Numbers:
    rows: list[tuple[object, ...]] = []
    for one in found:
        rows.append((one.name, one.memory, "all by the same error", *(f"{gain:.2f}" for gain in one.same)))
        worst = [f"{min(draws):.2f}" for draws in one.random]
        rows.append((one.name, one.memory, "random, worst draw", *worst))
        rows.append((one.name, one.memory, "no error, over none with b = g", f"{one.fixed:.1f}", *[""] * 10))
    columns = ("stream", "M", "gain over no phantoms", *(f"{error:+.0%}" for error in ERRORS))
    return table("Fig. 21: gain by error in the numbers of groups", columns, rows)


def _panel(found: Sequence[Gains], memory: int) -> Panel:
    x = [100 * error for error in ERRORS]
    lines = []
    for one in found:
        lines.append(Line(one.name, x, [float(np.mean(draws)) for draws in one.random]))
        lines.append(Line("… worst draw", x, [min(draws) for draws in one.random], dashed=True))
    return Panel(f"Fig. 21: M = {memory:,}", "error (%)", "gain over no phantoms", tuple(lines), bottom=0)
