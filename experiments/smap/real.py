"""smap, Fig. 19 and 20: plans at work, their collisions counted (Section 8.5), against GP and against no phantoms.

Plans come from the model, costs from tables that the stream went through. The baseline without phantoms is shown both
ways: all memory well allocated to the queries' tables, and tables of a fixed size, which is the only way in which
its cost can be constant in M, as the paper has it. So is GP: with what is left over of the memory spread (Section 8.4),
and with φ·g buckets a table (Fig. 5). Trains of packets stand for the paper's traffic; the captures have more groups
than that, so they are also given as much more memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.kit.captured import captured_streams
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
    spread,
    table,
)
from experiments.kit.streams import PRINTED, PaperStream
from experiments.kit.trains import PACKETS, trains
from experiments.models.notation import parse
from experiments.models.spaces import allocate
from experiments.smap.common import (
    FIXED,
    MEMORY,
    PAIRS,
    PHIS,
    READINGS,
    SINGLE,
    bare,
    fixed_cost,
    problem,
    real_cost,
    running_lengths,
    shape,
    uniform_streams,
)
from penstock.sharing.choose.choice import choose
from penstock.sharing.choose.search import ChosenTables
from penstock.sharing.graph.notation import text
from penstock.sharing.model.problem import Problem

TRAFFIC = "ABCD(AB BCD(BC BD CD))"
HERE = 40_000


@dataclass(frozen=True)
class CostsAtMemory:
    """Costs per record at one memory (before scaling), all counted; GP by φ, `kept` as Fig. 5 prints it."""

    memory: int
    length: tuple[float, ...]
    plans: dict[str, ChosenTables]
    epes: float
    gcsl: float
    by_phi: dict[str, tuple[float, ...]]
    none: float

    @property
    def gp(self) -> float:
        """With the best φ."""
        return min(self.by_phi["gp"])

    @property
    def kept(self) -> float:
        return min(self.by_phi["kept"])

    def over(self, cost: float) -> float:
        return cost / self.epes


@dataclass(frozen=True)
class Runs:
    """One stream at all memories; `fixed`: costs with tables of a fixed size, the same for all M.

    `scale` gives a stream with more groups than the paper's as much memory for each as it had there.
    """

    stream: PaperStream
    at: tuple[CostsAtMemory, ...]
    fixed: dict[str, float]
    scale: float

    @property
    def name(self) -> str:
        return self.stream.name if self.scale == 1 else f"{self.stream.name}, M × {self.scale:.1f}"

    @property
    def here(self) -> CostsAtMemory:
        """At the memory of the paper's examples."""
        (found,) = (worked for worked in self.at if worked.memory == HERE)
        return found

    def ratios(self, what: str) -> list[float]:
        return [one.over(getattr(one, what)) for one in self.at]


def work(
    stream: PaperStream, queries: Sequence[str], memories: Sequence[int], clustered: bool, scale: float = 1.0
) -> Runs:
    """All planners at all memories, every plan at work; l_a of a clustered stream is what a running system knows."""
    groups = stream.groups_by_letters()
    found = []
    for memory in memories:
        length = running_lengths(stream, queries, memory * scale) if clustered else (1.0,)
        asked = problem(groups, queries, memory * scale, length, len(stream.rows))
        plans = {"epes": choose("epes", asked, "es"), "gcsl": choose("gc", asked, "sl")}
        by_phi = {}
        for reading in READINGS:
            tried = [choose("gp", asked, "pl", phi=phi, spread=reading == "gp") for phi in PHIS]
            costs = [_cost(stream, plan, asked) for plan in tried]
            plans[reading] = tried[costs.index(min(costs))]
            by_phi[reading] = tuple(costs)
        none = bare(queries)
        found.append(
            CostsAtMemory(
                memory,
                length,
                plans,
                _cost(stream, plans["epes"], asked),
                _cost(stream, plans["gcsl"], asked),
                by_phi,
                real_cost(stream, none, allocate("sl", none, asked), asked),
            )
        )
    fixed = {size: fixed_cost(stream, queries, size) for size in FIXED}
    return Runs(stream, tuple(found), fixed, scale)


def _cost(stream: PaperStream, plan: ChosenTables, asked: Problem) -> float:
    return real_cost(stream, plan.configuration, plan.spaces, asked)


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    memories = (HERE, MEMORY[-1]) if settings.quick else MEMORY
    synthetic = []
    for stream in uniform_streams(settings.rows, settings.seed)[: 2 if settings.quick else None]:
        tell(f"uniform data, {stream.name}")
        synthetic.append(work(stream, SINGLE, memories, clustered=False))
    made = trains(min(settings.rows, PACKETS), settings.seed)
    tell(made.name)
    paper = [work(made, PAIRS, memories, clustered=True)]
    real = []
    for stream in captured_streams(settings, tell):
        tell(stream.name)
        for scale in (1.0, stream.groups("ABCD") / PRINTED[-1]):
            real.append(work(stream, PAIRS, memories, clustered=True, scale=scale))
    everything = (*synthetic, *paper, *real)
    return Findings(
        "plans at work: collisions counted (smap, Fig. 19, 20)",
        (*_synthetic_claims(synthetic), *_real_claims("Fig. 20", paper), *_real_claims("Fig. 20 on captures", real)),
        (
            _table("Fig. 19: uniform data, {A, B, C, D}", synthetic, memories),
            _table("Fig. 20: trains and captures, {AB, BC, BD, CD}", [*paper, *real], memories),
            _by_phi([*synthetic, *paper], memories),
            _plans([*paper, *real]),
        ),
        (
            _panel("Fig. 19(a)", synthetic[0]),
            _against_none("Fig. 19(b)", synthetic[0]),
            _phi_panel(synthetic[0]),
            _panel("Fig. 20(a)", paper[0]),
            _against_none("Fig. 20(b)", paper[0]),
            _phi_panel(paper[0]),
            _panel("Fig. 20(a)", real[0]),
            _against_none("Fig. 20(b)", real[0]),
            _against_none("Fig. 20(b)", real[1]),
        ),
        tuple(
            f"{one.name}: {len(one.stream.rows):,} tuples, {one.stream.groups('ABCD'):,} groups of ABCD, "
            f"l_a by depth at M = {one.at[-1].memory:,}: {', '.join(f'{length:.1f}' for length in one.at[-1].length)}"
            for one in everything
        ),
    )


def _common(runs: Sequence[Runs], figure: str) -> list[Claim]:
    return [
        judged(
            f"{figure}: GCSL costs at most 1.2 × EPES",
            "≤ 1.2",
            [InputAnswer(one.name, spread(one.ratios("gcsl")), max(one.ratios("gcsl")) <= 1.2) for one in runs],
            "both planned by the model, both counted; below 1 the plan of GCSL was luckier",
        ),
        *(
            judged(
                f"{figure}: GCSL costs less than GP with the best φ at every M ({said})",
                "always much lower",
                [
                    InputAnswer(one.name, f"GP {spread(each, 2)} × GCSL", min(each) > 1)
                    for one in runs
                    for each in ([getattr(w, reading) / w.gcsl for w in one.at],)
                ],
                f"best of φ from {PHIS[0]} to {PHIS[-1]} by counted cost; where none leaves room for a phantom "
                "GP is as dear as none",
            )
            for reading, said in READINGS.items()
        ),
        judged(
            f"{figure}: no phantoms costs more than 10 × EPES in many cases, all memory well allocated",
            "more than 10 ×",
            [InputAnswer(one.name, f"{spread(one.ratios('none'), 2)} ×", max(one.ratios("none")) > 10) for one in runs],
            "queries' tables share M by √(g h); then the baseline gains from memory as well, while four probes a tuple "
            "against little more than one bound the ratio near 4 once nothing collides",
        ),
        judged(
            f"{figure}: no phantoms costs more than 10 × EPES in many cases, tables of a fixed size",
            "more than 10 ×, rising with M",
            [
                InputAnswer(
                    one.name,
                    ", ".join(f"{size} {spread([w.over(c) for w in one.at], 1)} ×" for size, c in one.fixed.items()),
                    max(w.over(max(one.fixed.values())) for w in one.at) > 10,
                )
                for one in runs
            ],
            "a query's table does not grow with M, so its cost is constant in M as in the paper; with as many buckets "
            "as groups (φ = 1) uniform data gives the paper's factors (where groups are many that is more than M); "
            "holds if some size gives more than 10 × at some M",
        ),
    ]


def _synthetic_claims(runs: Sequence[Runs]) -> list[Claim]:
    claims = _common(runs, "Fig. 19")
    for reading, said in READINGS.items():
        any_phi = {one.name: [w.over(cost) for w in one.at for cost in w.by_phi[reading]] for one in runs}
        claims += [
            judged(
                f"Fig. 19: GP with the best φ costs up to 3.8 × EPES ({said})",
                "up to 3.8",
                [InputAnswer(one.name, spread(one.ratios(reading), 2), max(one.ratios(reading)) >= 3) for one in runs],
                f"best of φ from {PHIS[0]} to {PHIS[-1]}; holds if it reaches 3 at some M",
            ),
            judged(
                f"Fig. 19: GP with one φ or another costs up to 3.8 × EPES ({said})",
                "up to 3.8 (with the best φ)",
                [InputAnswer(name, spread(each, 2), max(each) >= 3) for name, each in any_phi.items()],
                f"all φ from {PHIS[0]} to {PHIS[-1]} and M; holds if it reaches 3",
            ),
            judged(
                f"Fig. 19: at M = 100,000 GCSL costs as little as 26 % of GP ({said})",
                "26 %",
                [
                    InputAnswer(one.name, f"{least:.0%} to {most:.0%}, {best:.0%} of it with the best φ", best <= 0.35)
                    for one in runs
                    for last in (one.at[-1],)
                    for shares in ([last.gcsl / cost for cost in last.by_phi[reading]],)
                    for least, most, best in ((min(shares), max(shares), last.gcsl / getattr(last, reading)),)
                ],
                "by φ; holds up to 35 % with the best φ; with room for everything PL is nearly as good as SL",
            ),
        ]
    return claims


def _real_claims(figure: str, runs: Sequence[Runs]) -> list[Claim]:
    wanted = parse(TRAFFIC)
    claims = []
    for one in runs:
        found = {name: one.here.plans[name].configuration for name in ("epes", "gcsl")}
        claims.append(
            Claim(
                f"{figure}: EPES and GCSL find {TRAFFIC} ({one.name})",
                f"{TRAFFIC}, both",
                ", ".join(f"{name.upper()} {text(configuration)}" for name, configuration in found.items()),
                all(shape(configuration) == shape(wanted) for configuration in found.values())
                and found["gcsl"].edges == wanted.edges,
                f"M = {HERE:,}{'' if one.scale == 1 else f' × {one.scale:.1f}'}, groups of the whole stream, l_a "
                "measured by depth; which phantoms pay depends on the numbers of groups and, where "
                "hardly anything leaves ABCD, on little else than chance",
            )
        )
    return [
        *claims,
        *_common(runs, figure),
        judged(
            f"{figure}: phantoms never cost more than none",
            "outperforms by a large margin",
            [
                InputAnswer(
                    one.name,
                    f"none {spread([w.none / w.gcsl for w in one.at], 2)} × GCSL",
                    all(w.none > w.gcsl for w in one.at),
                )
                for one in runs
            ],
            "none with all memory well allocated; where flows hardly repeat there is nothing to share, and l_a by "
            "depth, measured below phantoms, hides that",
        ),
    ]


def _table(title: str, runs: Sequence[Runs], memories: Sequence[int]) -> Numbers:
    rows: list[tuple[object, ...]] = []
    for one in runs:
        rows.append((one.name, "EPES, cost a tuple", *(w.epes for w in one.at)))
        for label, what in (
            ("GCSL", "gcsl"),
            *((f"GP, best φ, {said}", reading) for reading, said in READINGS.items()),
            ("none, well allocated", "none"),
        ):
            rows.append((one.name, f"{label}, over EPES", *one.ratios(what)))
        for size, cost in one.fixed.items():
            rows.append((one.name, f"none, {size}, over EPES", *(w.over(cost) for w in one.at)))
    return table(title, ("stream", "", *(f"M = {memory // 1000}k" for memory in memories)), rows)


def _plans(runs: Sequence[Runs]) -> Numbers:
    rows = []
    for one in runs:
        rows.append((one.name, *(text(one.here.plans[name].configuration) for name in ("epes", "gcsl", *READINGS))))
    columns = ("stream", "EPES", "GCSL", *(f"GP, best φ, {said}" for said in READINGS.values()))
    return table(f"configurations, M = {HERE:,}", columns, rows)


def _by_phi(runs: Sequence[Runs], memories: Sequence[int]) -> Numbers:
    rows = [
        (one.name, said, f"{phi:g}", *(w.over(w.by_phi[reading][place]) for w in one.at))
        for one in runs
        for reading, said in READINGS.items()
        for place, phi in enumerate(PHIS)
    ]
    columns = ("stream", "GP", "φ", *(f"M = {memory // 1000}k" for memory in memories))
    return table("cost of GP over EPES by φ, counted", columns, rows)


def _phi_panel(one: Runs) -> Panel:
    last = one.at[-1]
    lines = [
        Line(f"GP, {said}, M = {w.memory:,}", PHIS, [w.over(cost) for cost in w.by_phi[reading]], dashed=w is last)
        for w in (one.here, last)
        for reading, said in READINGS.items()
    ]
    return Panel(f"GP by φ: {one.name}", "φ", "cost over EPES", tuple(lines), bottom=0)


def _panel(title: str, one: Runs) -> Panel:
    x = [worked.memory / 1000 for worked in one.at]
    lines = [
        Line("GCSL", x, one.ratios("gcsl")),
        *(Line(f"GP, best φ, {said}", x, one.ratios(reading)) for reading, said in READINGS.items()),
    ]
    return Panel(f"{title}: {one.name}", "M (thousand)", "cost over EPES", tuple(lines), bottom=0)


def _against_none(title: str, one: Runs) -> Panel:
    x = [worked.memory / 1000 for worked in one.at]
    lines = [Line("GCSL", x, one.ratios("gcsl")), Line("none, well allocated", x, one.ratios("none"))]
    lines += [Line(f"none, {size}", x, [w.over(c) for w in one.at], dashed=True) for size, c in one.fixed.items()]
    return Panel(f"{title}: {one.name}", "M (thousand)", "cost over EPES", tuple(lines), bottom=0)
