"""smap, Fig. 16 to 18: choosing phantoms for {A, B, C, D} on uniform data, by the model (Section 8.4).

The paper draws records at random from as many groups as its traffic has; how many values an attribute has it does not
say, and the best configuration turns on that. So there are four inputs, all of 2837 groups of ABCD: attributes apart
from each other with 12, 60 or 552 values each, and counts nested as the paper prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from experiments.kit.report import (
    Claim,
    ExperimentSettings,
    Findings,
    InputAnswer,
    Line,
    Numbers,
    Panel,
    Tell,
    cell,
    judged,
    spread,
    table,
)
from experiments.kit.streams import PaperStream, drawn, nested
from experiments.models.notation import parse
from experiments.models.spaces import allocate
from experiments.smap.common import MEMORY, PHIS, SINGLE, bare, model_cost, problem, shape
from penstock.sharing.choose.choice import choose
from penstock.sharing.choose.search import ChosenTables
from penstock.sharing.graph.notation import name_letters, text
from penstock.sharing.model.problem import Problem

VALUES = (12, 60, 552)
HERE = 40_000
BEST = "ABCD(AC(A C) BD(B D))"
STEPPED = (0.8, 1.2, 1.6, 2.0)


@dataclass(frozen=True)
class ChoosersAtMemory:
    """All choosers at one memory; GP by φ."""

    memory: int
    epes: ChosenTables
    gcsl: ChosenTables
    gcpl: ChosenTables
    gp: dict[float, ChosenTables]
    none: float

    def over(self, cost: float) -> float:
        return cost / self.epes.cost

    @property
    def gp_costs(self) -> list[float]:
        return [self.over(choice.cost) for choice in self.gp.values()]


def uniform_streams(rows: int, seed: int) -> list[PaperStream]:
    """The uniform inputs, by how much their attributes tell of each other."""
    return [*(drawn(rows, values, seed=seed) for values in VALUES), nested(rows, seed)]


def chosen(asked: Problem, queries: Sequence[str]) -> ChoosersAtMemory:
    none = bare(queries)
    return ChoosersAtMemory(
        int(asked.memory),
        choose("epes", asked, "es"),
        choose("gc", asked, "sl"),
        choose("gc", asked, "pl"),
        {phi: choose("gp", asked, "pl", phi=phi) for phi in PHIS},
        model_cost(none, allocate("sl", none, asked), asked),
    )


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    memories = (HERE, MEMORY[-1]) if settings.quick else MEMORY
    streams = uniform_streams(1000, settings.seed)[:2] if settings.quick else uniform_streams(1000, settings.seed)
    found: dict[str, dict[int, ChoosersAtMemory]] = {}
    for stream in streams:
        found[stream.name] = {}
        for memory in memories:
            tell(f"{stream.name}, M = {memory:,}")
            asked = problem(stream.groups_by_letters(), SINGLE, memory)
            found[stream.name][memory] = chosen(asked, SINGLE)
    first = streams[0].name
    return Findings(
        "choosing phantoms for {A, B, C, D} on uniform data (smap, Fig. 16-18)",
        (*_configuration_claims(found), *_cost_claims(found), *_step_claims(found)),
        (_configurations(found), _costs(found)),
        (
            *(_phi_panel(name, at[HERE]) for name, at in found.items()),
            _step_panel(first, found[first][HERE]),
            _memory_panel(first, found[first]),
        ),
        tuple(
            f"{stream.name}: groups "
            + ", ".join(f"{name} {stream.groups(name):,}" for name in ("A", "AB", "AC", "ABC", "ABD", "ABCD"))
            for stream in streams
        ),
    )


def _configuration_claims(found: dict[str, dict[int, ChoosersAtMemory]]) -> list[Claim]:
    wanted = shape(parse(BEST))
    claims = []
    for name, at in found.items():
        here = at[HERE]
        best, ours = (text(choice.configuration) for choice in (here.epes, here.gcsl))
        claims.append(
            Claim(
                f"EPES and GCSL find {BEST}, up to symmetry ({name})",
                f"{BEST}, both",
                f"EPES {best}, GCSL {ours}",
                shape(here.epes.configuration) == wanted == shape(here.gcsl.configuration),
                f"M = {HERE:,}; the answer depends on how many groups pairs and triples have, which is not printed; "
                f"GCSL costs {here.over(here.gcsl.cost):.3f} × EPES",
            )
        )
    return claims


def _cost_claims(found: dict[str, dict[int, ChoosersAtMemory]]) -> list[Claim]:
    def ask(claim: str, paper: str, why: str, of: str) -> Claim:
        return judged(claim, paper, [_answer(of, name, list(at.values())) for name, at in found.items()], why)

    return [
        ask("Fig. 18: GCSL costs at most 1.04 × EPES at every M", "< 1.04", "by the model, random data", "optimal"),
        ask(
            "Fig. 16, 18: GCSL is never above GP, whatever φ",
            "always lower",
            "all φ and M; GP finishes with PL, which gives all tables the same rate",
            "gp",
        ),
        ask("Fig. 16: GCPL is never above GP, whatever φ", "always better", "all φ and M", "gcpl"),
        ask("Fig. 16: GCSL is better than GCPL", "better", "all M", "pl"),
        ask(
            "Fig. 16: the cost of GP falls and then rises as φ grows",
            "falls, then rises",
            f"M = {HERE:,}; holds if the least cost is at neither end of φ from {PHIS[0]} to {PHIS[-1]}",
            "knee",
        ),
        ask(
            "phantoms beat none, both with all memory well allocated",
            "(Fig. 19: more than 10 ×)",
            "by the model; holds if by more than 10 × at some M",
            "none",
        ),
    ]


def _answer(of: str, name: str, at: list[ChoosersAtMemory]) -> InputAnswer:
    """One of the questions of `_cost_claims`, for one input."""
    optimal = [one.over(one.gcsl.cost) for one in at]
    if of == "optimal":
        return InputAnswer(name, spread(optimal), max(optimal) <= 1.04)
    if of in ("gp", "gcpl"):
        mine = [one.gcsl.cost if of == "gp" else one.gcpl.cost for one in at]
        wins = [
            cost <= choice.cost * (1 + 1e-9) for cost, one in zip(mine, at, strict=True) for choice in one.gp.values()
        ]
        return InputAnswer(name, f"in {sum(wins)} of {len(wins)} cases", all(wins))
    if of == "pl":
        ratios = [one.gcpl.cost / one.gcsl.cost for one in at]
        return InputAnswer(name, f"GCPL {spread(ratios, 2)} × GCSL", min(ratios) > 1)
    if of == "knee":
        (here,) = (one for one in at if one.memory == HERE)
        costs = here.gp_costs
        least = costs.index(min(costs))
        return InputAnswer(name, f"least at φ = {PHIS[least]:g}", min(costs) < min(costs[0], costs[-1]))
    ratios = [one.over(one.none) for one in at]
    return InputAnswer(name, f"{spread(ratios, 2)} ×", max(ratios) > 10)


def _step_claims(found: dict[str, dict[int, ChoosersAtMemory]]) -> list[Claim]:
    gains = {name: _gains(at[HERE].gcsl) for name, at in found.items()}
    added = {name: [len(at[HERE].gp[phi].steps) - 1 for phi in (1.6, 2.0)] for name, at in found.items()}
    return [
        judged(
            "Fig. 17: the first phantom gains most, later ones ever less (GCSL)",
            "benefit decreases",
            [
                InputAnswer(
                    name, ", ".join(cell(gain) for gain in gain_list), all(a >= b for a, b in pairwise(gain_list))
                )
                for name, gain_list in gains.items()
            ],
            f"cost saved by each phantom, M = {HERE:,}",
        ),
        judged(
            "Fig. 17: with φ = 1.6 and 2.0 GP has room for one phantom only",
            "one",
            [InputAnswer(name, " and ".join(map(str, count)), max(count) <= 1) for name, count in added.items()],
            f"M = {HERE:,}; how much fits depends on the groups of pairs and triples",
        ),
    ]


def _gains(choice: ChosenTables) -> list[float]:
    costs = [step.cost for step in choice.steps]
    return [before - after for before, after in pairwise(costs)]


def _configurations(found: dict[str, dict[int, ChoosersAtMemory]]) -> Numbers:
    rows = []
    for name, at in found.items():
        here = at[HERE]
        best_phi = min(here.gp, key=lambda phi: here.gp[phi].cost)
        rows.append(
            (
                name,
                text(here.epes.configuration),
                text(here.gcsl.configuration),
                f"{text(here.gp[best_phi].configuration)} (φ = {best_phi:g})",
            )
        )
    return table(f"configurations, M = {HERE:,}", ("input", "EPES", "GCSL", "GP, best φ"), rows)


def _costs(found: dict[str, dict[int, ChoosersAtMemory]]) -> Numbers:
    rows: list[tuple[object, ...]] = []
    for name, at in found.items():
        rows.append((name, "GCSL", *(one.over(one.gcsl.cost) for one in at.values())))
        rows.append((name, "GCPL", *(one.over(one.gcpl.cost) for one in at.values())))
        rows.append((name, "GP, best φ", *(min(one.gp_costs) for one in at.values())))
        rows.append((name, "GP, worst φ", *(max(one.gp_costs) for one in at.values())))
        rows.append((name, "no phantoms", *(one.over(one.none) for one in at.values())))
    memories = next(iter(found.values()))
    columns = ("input", "cost over EPES", *(f"M = {memory // 1000}k" for memory in memories))
    return table("Fig. 18: costs over EPES, by the model", columns, rows)


def _phi_panel(name: str, here: ChoosersAtMemory) -> Panel:
    flat = [PHIS[0], PHIS[-1]]
    return Panel(
        f"Fig. 16: {name}",
        "φ",
        "cost over EPES",
        (
            Line("GP", PHIS, here.gp_costs),
            Line("GCPL", flat, [here.over(here.gcpl.cost)] * 2),
            Line("GCSL", flat, [here.over(here.gcsl.cost)] * 2),
        ),
    )


def _step_panel(name: str, here: ChoosersAtMemory) -> Panel:
    runs = [("GCSL", here.gcsl), *((f"GP, φ = {phi:g}", here.gp[phi]) for phi in STEPPED)]
    lines = [Line(label, range(len(run.steps)), [here.over(step.cost) for step in run.steps]) for label, run in runs]
    added = ", ".join(name_letters(step.added) for step in here.gcsl.steps if step.added)
    return Panel(f"Fig. 17: {name} (GCSL adds {added})", "phantoms chosen", "cost over EPES", tuple(lines))


def _memory_panel(name: str, at: dict[int, ChoosersAtMemory]) -> Panel:
    x = [memory / 1000 for memory in at]
    lines = [Line("GCSL", x, [one.over(one.gcsl.cost) for one in at.values()])]
    for phi in (0.6, 1.0, 1.4, 2.0, 3.0):
        lines.append(Line(f"GP, φ = {phi:g}", x, [one.over(one.gp[phi].cost) for one in at.values()]))
    return Panel(f"Fig. 18: {name}", "M (thousand)", "cost over EPES", tuple(lines))
