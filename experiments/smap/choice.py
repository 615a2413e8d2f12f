"""smap, Fig. 16 to 18: choosing phantoms, by the model (Section 8.4).

What is best turns on all numbers of groups, and the paper prints four of fifteen. So there are hundreds of inputs,
drawn from all that agree with what it tells (`kit.counts`). GCSL plans for all of them; EPES, which tries every set of
phantoms with the best space, and GP by φ for the first few, at every M.

GP is asked both ways in which the paper has it: Section 8.4 gives what is left over of the memory to all tables, in
proportion to their groups; Fig. 5 leaves each table φ·g buckets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.kit.counts import GroupCounts, drawn_counts
from experiments.kit.report import Claim, ExperimentSettings, Findings, Line, Numbers, Panel, Tell, table
from experiments.models.notation import parse
from experiments.models.spaces import allocate
from experiments.smap.allocation import PAPER_LENGTHS
from experiments.smap.common import MEMORY, PAIRS, PHIS, READINGS, SINGLE, bare, model_cost, problem, shape
from penstock.sharing.choose.choice import choose
from penstock.sharing.choose.search import ChosenTables
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.graph.notation import name_letters, text
from penstock.sharing.model.problem import Problem

DRAWS, QUICK_DRAWS = 600, 60
YARDSTICKS, QUICK_YARDSTICKS = 40, 6  # of the draws: those that EPES is asked of, for every M
HERE = 40_000
BEST, TRAFFIC = "ABCD(AC(A C) BD(B D))", "ABCD(AB BCD(BC BD CD))"
STEPPED = (0.8, 1.2, 1.6, 2.0)
SHOWN = (0.6, 1.0, 1.4, 2.0, 3.0)


@dataclass(frozen=True)
class ChoosersAtMemory:
    """All choosers at one memory; GP by φ, `gp` with what is left over spread, `kept` as Fig. 5 prints it."""

    memory: int
    epes: ChosenTables
    gcsl: ChosenTables
    gcpl: ChosenTables
    gp: dict[float, ChosenTables]
    kept: dict[float, ChosenTables]
    none: float

    def over(self, cost: float) -> float:
        return cost / self.epes.cost

    def by_phi(self, reading: str) -> list[float]:
        return [self.over(choice.cost) for choice in getattr(self, reading).values()]


Drawn = list[ChoosersAtMemory]  # one input at all memories


def chosen(asked: Problem, queries: Sequence[str]) -> ChoosersAtMemory:
    none = bare(queries)
    gp, kept = ({phi: choose("gp", asked, "pl", phi=phi, spread=spread) for phi in PHIS} for spread in (True, False))
    return ChoosersAtMemory(
        int(asked.memory),
        choose("epes", asked, "es"),
        choose("gc", asked, "sl"),
        choose("gc", asked, "pl"),
        gp,
        kept,
        model_cost(none, allocate("sl", none, asked), asked),
    )


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    memories = (HERE, MEMORY[-1]) if settings.quick else MEMORY
    counts = drawn_counts(QUICK_DRAWS if settings.quick else DRAWS, settings.seed)
    few = counts[: QUICK_YARDSTICKS if settings.quick else YARDSTICKS]
    tell(f"GCSL, {len(counts)} inputs")
    greedy = [choose("gc", problem(each, SINGLE, HERE), "sl") for each in counts]
    drawn: list[Drawn] = []
    for number, each in enumerate(few):
        tell(f"all choosers, input {number + 1} of {len(few)}")
        drawn.append([chosen(problem(each, SINGLE, memory), SINGLE) for memory in memories])
    tell("{AB, BC, BD, CD}")
    pairs = {
        "flows": _pairs(counts, few, PAPER_LENGTHS),
        "random": _pairs(counts, few, (1.0,)),
    }
    return Findings(
        "choosing phantoms, by the model (smap, Fig. 16-18)",
        (
            *_configuration_claims(greedy, drawn),
            *(claim for name, found in pairs.items() for claim in _pair_claims(name, *found)),
            *_cost_claims(drawn),
            *_step_claims(greedy, drawn),
        ),
        (_shapes(greedy, drawn), _costs(drawn, memories), _by_phi(drawn, memories)),
        (
            *(_phi_panel(drawn, memory) for memory in (HERE, memories[-1])),
            _step_panel(_at(drawn[0], HERE)),
            _memory_panel(drawn, memories),
        ),
        (
            f"{len(counts)} inputs: 552, 1846, 2117, 2837 groups of A, AB, ABC, ABCD, others from 552 to 2836",
            "drawn uniformly from all in which no relation has fewer groups than a part of it",
            f"EPES and GP are asked of the first {len(few)}",
        ),
    )


def _pairs(
    counts: Sequence[GroupCounts], few: Sequence[GroupCounts], length: Sequence[float]
) -> tuple[list[Configuration], list[Configuration]]:
    """What GCSL finds for {AB, BC, BD, CD}, and EPES of the first few."""
    greedy = [choose("gc", problem(each, PAIRS, HERE, length), "sl").configuration for each in counts]
    return greedy, [choose("epes", problem(each, PAIRS, HERE, length), "es").configuration for each in few]


def _at(one: Drawn, memory: int) -> ChoosersAtMemory:
    return next(each for each in one if each.memory == memory)


def _share(found: Sequence[bool]) -> str:
    return f"{np.mean(found):.0%} of {len(found)}"


def _most(found: Sequence[bool]) -> bool:
    return float(np.mean(found)) > 0.5


def _configuration_claims(greedy: Sequence[ChosenTables], drawn: Sequence[Drawn]) -> list[Claim]:
    wanted = shape(parse(BEST))
    ours = [shape(choice.configuration) == wanted for choice in greedy]
    best = [shape(_at(one, HERE).epes.configuration) == wanted for one in drawn]
    both = [shape(_at(one, HERE).epes.configuration) == shape(_at(one, HERE).gcsl.configuration) for one in drawn]
    why = (
        f"M = {HERE:,}, inputs that agree with what the paper tells; holds if for more than half: its own numbers are "
        "one such input"
    )
    return [
        Claim(f"GCSL finds {BEST}, up to symmetry", BEST, _share(ours), _most(ours), why),
        Claim(f"EPES finds {BEST}, up to symmetry", BEST, _share(best), _most(best), why),
        Claim("GCSL finds the same configuration as EPES, up to symmetry", "the same", _share(both), _most(both), why),
    ]


def _pair_claims(name: str, greedy: Sequence[Configuration], best: Sequence[Configuration]) -> list[Claim]:
    claims = []
    for chooser, found in (("GCSL", greedy), ("EPES", best)):
        ours = [text(one) == text(parse(TRAFFIC)) for one in found]
        claims.append(
            Claim(
                f"{chooser} finds {TRAFFIC} ({name})",
                TRAFFIC,
                _share(ours),
                _most(ours),
                f"M = {HERE:,}, {{AB, BC, BD, CD}}, {'l_a = 40, 3, 1 by depth' if name == 'flows' else 'l_a = 1'}; the "
                "letters as printed; holds if for more than half of the inputs",
            )
        )
    return claims


def _cost_claims(drawn: Sequence[Drawn]) -> list[Claim]:
    at = [each for one in drawn for each in one]
    here = [_at(one, HERE) for one in drawn]
    optimal = [each.over(each.gcsl.cost) for each in at]
    better = [each.gcpl.cost / each.gcsl.cost for each in at]
    none = [each.over(each.none) for each in at]
    inputs = f"by the model, {len(drawn)} inputs, all M"
    claims = [
        Claim(
            "Fig. 18: GCSL costs at most 1.04 × EPES at every M",
            "< 1.04",
            f"{np.mean([x <= 1.04 for x in optimal]):.0%} of the cases, {_range(optimal, 3)}",
            max(optimal) <= 1.04,
            f"{inputs}; holds if in all cases; at M of 60,000 and less, where tables hold fewer entries than groups, "
            "μ g/b is far above the rate, so SL divides the memory badly, and GCSL chooses by that",
        ),
        Claim(
            "Fig. 16: GCSL is better than GCPL",
            "better",
            f"GCPL {_range(better)} × GCSL",
            min(better) > 1,
            f"{inputs}; better in {np.mean([x > 1 for x in better]):.0%} of the cases; where all pairs have about as "
            "many groups, equal rates are near the best",
        ),
        Claim(
            "phantoms beat none, both with all memory well allocated",
            "(Fig. 19: more than 10 ×)",
            f"{_range(none)} ×",
            max(none) > 10,
            f"{inputs}; holds if by more than 10 × at some M",
        ),
    ]
    for reading, said in READINGS.items():
        for mine in ("gcsl", "gcpl"):
            wins = [
                getattr(each, mine).cost <= choice.cost * (1 + 1e-9)
                for each in at
                for choice in getattr(each, reading).values()
            ]
            claims.append(
                Claim(
                    f"Fig. 16, 18: {mine.upper()} is never above GP, whatever φ ({said})",
                    "always lower",
                    f"in {sum(wins):,} of {len(wins):,} cases",
                    all(wins),
                    f"{inputs} and φ",
                )
            )
        knees = [0 < costs.index(min(costs)) < len(PHIS) - 1 for each in here for costs in (each.by_phi(reading),)]
        tuned = [min(each.by_phi(reading)) for each in at]
        worst = [max(each.by_phi(reading)) for each in at]
        claims += [
            Claim(
                f"Fig. 16: the cost of GP falls and then rises as φ grows ({said})",
                "falls, then rises",
                f"{_share(knees)}, least at φ = {_range([_best_phi(each, reading) for each in here], 1)}",
                _most(knees),
                f"M = {HERE:,}; so it is where the least cost is at neither end of φ from {PHIS[0]} to {PHIS[-1]}; "
                "holds if for more than half of the inputs",
            ),
            Claim(
                f"GP with the best φ costs up to 3.8 × EPES, by the model ({said})",
                "(Fig. 19: up to 3.8)",
                f"{_range(tuned)} ×",
                max(tuned) >= 3,
                f"{inputs}; holds if it reaches 3; with the worst φ {_range(worst)} ×",
            ),
            Claim(
                f"GP with some φ costs 3.8 × EPES or more, by the model ({said})",
                "(Fig. 19: up to 3.8)",
                f"{_range(worst)} ×",
                max(worst) >= 3.8,
                f"{inputs} and φ from {PHIS[0]} to {PHIS[-1]}; (ours) where φ is not the best one",
            ),
        ]
    return claims


def _best_phi(each: ChoosersAtMemory, reading: str) -> float:
    costs = each.by_phi(reading)
    return PHIS[costs.index(min(costs))]


def _range(values: Sequence[float], digits: int = 2) -> str:
    return f"{min(values):.{digits}f}–{max(values):.{digits}f} (median {np.median(values):.{digits}f})"


def _step_claims(greedy: Sequence[ChosenTables], drawn: Sequence[Drawn]) -> list[Claim]:
    gains = [_gains(choice) for choice in greedy]
    first = [each[0] == max(each) for each in gains if each]
    falling = [all(a >= b for a, b in pairwise(each)) for each in gains]
    rooms = {phi: [len(_at(one, HERE).gp[phi].steps) - 1 for one in drawn] for phi in (1.6, 2.0)}
    return [
        Claim(
            "Fig. 17: the first phantom gains most (GCSL)",
            "the largest decrease",
            _share(first),
            _most(first),
            f"cost saved by each phantom, M = {HERE:,}; holds if for more than half of the inputs",
        ),
        Claim(
            "Fig. 17: later phantoms gain ever less (GCSL)",
            "benefit decreases",
            _share(falling),
            _most(falling),
            f"M = {HERE:,}; the second and the third often gain only together; holds if for more than half",
        ),
        *(
            Claim(
                f"Fig. 17: with φ = {phi:g} GP has room for one phantom only",
                "one",
                f"{_share([room <= 1 for room in found])}, {min(found)} to {max(found)}",
                _most([room == 1 for room in found]),
                f"M = {HERE:,}, φ·g·h words each; holds if for more than half of the inputs",
            )
            for phi, found in rooms.items()
        ),
    ]


def _gains(choice: ChosenTables) -> list[float]:
    costs = [step.cost for step in choice.steps]
    return [before - after for before, after in pairwise(costs)]


def _shapes(greedy: Sequence[ChosenTables], drawn: Sequence[Drawn]) -> Numbers:
    """The configurations that are found most, each written as it was first."""

    def counted(found: Sequence[Configuration]) -> list[tuple[str, float]]:
        written: dict[object, str] = {}
        for one in found:
            written.setdefault(shape(one), text(one))
        return [(written[key], n / len(found)) for key, n in Counter(map(shape, found)).most_common(5)]

    rows: list[tuple[object, ...]] = []
    for name, found in (
        ("GCSL", [choice.configuration for choice in greedy]),
        ("EPES", [_at(one, HERE).epes.configuration for one in drawn]),
        *(
            (f"GP, best φ, {said}", [_tuned(_at(one, HERE), reading).configuration for one in drawn])
            for reading, said in READINGS.items()
        ),
    ):
        rows += [(name, written, f"{share:.0%}") for written, share in counted(found)]
    return table(f"configurations up to symmetry, M = {HERE:,}", ("chooser", "such as", "inputs"), rows)


def _tuned(each: ChoosersAtMemory, reading: str) -> ChosenTables:
    tried: dict[float, ChosenTables] = getattr(each, reading)
    return min(tried.values(), key=lambda choice: choice.cost)


Cost = Callable[[ChoosersAtMemory], float]


def _median(drawn: Sequence[Drawn], memory: int, of: Cost) -> float:
    return float(np.median([of(_at(one, memory)) for one in drawn]))


def _costs(drawn: Sequence[Drawn], memories: Sequence[int]) -> Numbers:
    costs: dict[str, Cost] = {
        "GCSL": lambda each: each.over(each.gcsl.cost),
        "GCPL": lambda each: each.over(each.gcpl.cost),
        "GP, best φ, spread": lambda each: min(each.by_phi("gp")),
        "GP, best φ, as printed": lambda each: min(each.by_phi("kept")),
        "no phantoms": lambda each: each.over(each.none),
    }
    rows = []
    for name, of in costs.items():
        for what, pick in (("median", np.median), ("most", np.max)):
            rows.append((name, what, *(float(pick([of(_at(one, m)) for one in drawn])) for m in memories)))
    columns = ("cost over EPES", "", *(f"M = {memory // 1000}k" for memory in memories))
    return table("Fig. 18: costs over EPES, by the model", columns, rows)


def _by_phi(drawn: Sequence[Drawn], memories: Sequence[int]) -> Numbers:
    rows = [
        (said, f"{phi:g}", *(_median(drawn, m, lambda each: each.by_phi(reading)[place]) for m in memories))  # noqa: B023
        for reading, said in READINGS.items()
        for place, phi in enumerate(PHIS)
    ]
    columns = ("GP", "φ", *(f"M = {memory // 1000}k" for memory in memories))
    return table("Fig. 16, 18: cost of GP over EPES by φ, median of the inputs", columns, rows)


def _phi_panel(drawn: Sequence[Drawn], memory: int) -> Panel:
    flat = [PHIS[0], PHIS[-1]]
    at = [_at(one, memory) for one in drawn]
    lines = [
        Line(f"GP, {said}", PHIS, np.median([each.by_phi(reading) for each in at], axis=0).tolist())
        for reading, said in READINGS.items()
    ]
    for name in ("gcpl", "gcsl"):
        middle = float(np.median([each.over(getattr(each, name).cost) for each in at]))
        lines.append(Line(name.upper(), flat, [middle] * 2))
    return Panel(f"Fig. 16: M = {memory:,}, median of {len(at)} inputs", "φ", "cost over EPES", tuple(lines))


def _step_panel(here: ChoosersAtMemory) -> Panel:
    runs = [("GCSL", here.gcsl), *((f"GP, φ = {phi:g}", here.gp[phi]) for phi in STEPPED)]
    lines = [Line(label, range(len(run.steps)), [here.over(step.cost) for step in run.steps]) for label, run in runs]
    added = ", ".join(name_letters(step.added) for step in here.gcsl.steps if step.added)
    return Panel(f"Fig. 17: first input (GCSL adds {added})", "phantoms chosen", "cost over EPES", tuple(lines))


def _memory_panel(drawn: Sequence[Drawn], memories: Sequence[int]) -> Panel:
    x = [memory / 1000 for memory in memories]
    lines = [Line("GCSL", x, [_median(drawn, m, lambda each: each.over(each.gcsl.cost)) for m in memories])]
    for phi in SHOWN:
        place = PHIS.index(phi)
        for reading, said in READINGS.items():
            y = [_median(drawn, m, lambda each: each.by_phi(reading)[place]) for m in memories]  # noqa: B023
            lines.append(Line(f"GP, φ = {phi:g}, {said}", x, y, dashed=reading == "kept"))
    return Panel(f"Fig. 18: median of {len(drawn)} inputs", "M (thousand)", "cost over EPES", tuple(lines), log_y=True)
