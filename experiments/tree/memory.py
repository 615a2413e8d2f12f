"""aggregate-tree, Fig. 4: hash operations against memory, all 78 pairs of 13 attributes (Sec. VIII-B).

Plans are made for one epoch and run over several, table by table, every hash operation counted; what falls at the ends
of epochs is told apart. Every way of planning starts from its own tree for the next smaller memory as well as from
none; SLC and ours are planned from the start at each M as well, as the paper did. Memory is M for an epoch of 400,000
records as in the paper, and less in proportion for shorter ones.
`memory_claims` has what the paper says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from experiments.kit.report import ExperimentSettings, Findings, Line, Numbers, Panel, Tell, table
from experiments.tree.compared import LABELS, WAYS, Compared, Swept, WaysAtMemory
from experiments.tree.example import example_claims
from experiments.tree.memory_claims import cost_claims, memory_claims, model_claims, scratch_claims, shape_claims
from experiments.tree.plans import TreePlan, TreePlanner, tuned
from experiments.tree.records import EPOCHS, connections, netflow
from experiments.tree.streams import LETTERS, PAIRS, RecordEpoch, RecordStream
from experiments.tree.tables import DirectTable, run_tree
from penstock.sharing.graph.notation import text

MEMORY = (1_000, 10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 3_200_000, 5_000_000)
QUICK_MEMORY = (10_000, 100_000, 5_000_000)
SHOWN = 100_000
QUICK_QUERIES = tuple(a + b for a, b in combinations(LETTERS[:8], 2))
SIZES, QUICK_SIZES = 50, 5
FEW = 120_000  # records of an epoch up to which planning is quick enough for all sizes


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    memories = QUICK_MEMORY if settings.quick else MEMORY
    sizes = QUICK_SIZES if settings.quick else SIZES
    streams = (netflow(settings, epochs=2 if settings.quick else EPOCHS), connections(settings, tell))
    queries = QUICK_QUERIES if settings.quick else PAIRS
    found = [compare(records, queries, memories, sizes, tell) for records in streams]
    tell("Example 1")
    return Findings(
        "cost against memory (aggregate-tree, Fig. 4)",
        (
            *cost_claims(found),
            *scratch_claims(found),
            *shape_claims(found),
            *memory_claims(found),
            *model_claims(found),
            *example_claims(settings),
        ),
        (*(_table(one) for one in found), _trees(found)),
        (
            *(_total_panel(one) for one in found),
            _parts_panel("Fig. 4(b)", found[0], "slc"),
            _scratch_panel(found[0]),
            _parts_panel("Fig. 4(c)", found[0], "ours"),
            *(_sweep_panel(one) for one in found),
        ),
        tuple(
            f"{one.name}: {one.records.legend()}; planned for {one.records.usual.rows:,} records, counted over "
            f"{one.at[0].counted['ours'].rows:,}, M × {one.records.scale:.2f}"
            for one in found
        ),
    )


def compare(records: RecordStream, queries: Sequence[str], memories: Sequence[int], sizes: int, tell: Tell) -> Compared:
    """All ways at all memories, and ours at many sizes."""
    planner, epochs = TreePlanner(records.usual), records.some(EPOCHS)
    found: list[WaysAtMemory] = []
    for memory in memories:
        tell(f"{records.name}, M = {memory:,}")
        before = found[-1].planned if found else {}
        found.append(_work(planner, epochs, queries, memory, memory * records.scale, before))
    tell(f"{records.name}, {sizes} sizes of memory")
    steps = np.geomspace(memories[0], memories[-1], sizes) * records.scale
    plans = [worked.plans["ours"] for worked in found]
    fixed = plans[2 * len(plans) // 3 - 1]
    again = _chain(planner, queries, steps) if records.usual.rows <= FEW else plans
    anew = (planner.plan(queries, memory * records.scale) for memory in memories)
    return Compared(
        records,
        tuple(queries),
        tuple(found),
        kept=_swept((planner.again(fixed, memory) for memory in steps), records.usual),
        again=_swept(again, records.usual),
        anew=_swept(anew, records.usual),
    )


def _work(
    planner: TreePlanner,
    epochs: Sequence[RecordEpoch],
    queries: Sequence[str],
    memory: int,
    scaled: float,
    before: dict[str, TreePlan],
) -> WaysAtMemory:
    planned = {way: planner.plan(queries, scaled, way, before.get(way)) for way in WAYS}
    plans, ours = dict(planned), planned["ours"]
    counted = {way: planned[way].run(epochs) for way in WAYS if way != "slc"}
    plans["slc"], counted["slc"] = tuned(planned["slc"], epochs)
    single = {way: plans[way].run([planner.epoch]).per_tuple for way in ("ours", "paper")}
    mapped = run_tree(planner.epoch, ours.configuration, ours.entries, DirectTable).per_tuple
    scratch = planned["slc"] if not before else planner.plan(queries, scaled, "slc")
    return WaysAtMemory(
        len(queries), memory, planned, plans, counted, single, mapped, tuned(scratch, [planner.epoch])[1]
    )


def _chain(planner: TreePlanner, queries: Sequence[str], memories: Iterable[float]) -> Iterable[TreePlan]:
    before = None
    for memory in memories:
        before = planner.plan(queries, memory, before=before)
        yield before


def _swept(plans: Iterable[TreePlan], epoch: RecordEpoch) -> Swept:
    found = [(plan.problem.memory, plan.predicted, plan.run([epoch]).per_tuple) for plan in plans]
    memory, predicted, counted = zip(*found, strict=True)
    return Swept(memory, predicted, counted)


def _table(one: Compared) -> Numbers:
    rows = []
    for worked in one.at:
        ours, slc = worked.counted["ours"], worked.counted["slc"]
        rows.append(
            (
                worked.memory,
                *(worked.share(way) for way in WAYS),
                worked.scratch.per_tuple / worked.queries,
                f"{1 - ours.total / slc.total:.0%}",
                f"{ours.end / ours.total:.0%}",
                f"{slc.end / slc.total:.0%}",
                f"{sum(worked.plans['slc'].entries) / sum(worked.planned['slc'].entries):.0%}",
                sum(1 for entries in worked.plans["ours"].entries if entries),
                worked.plans["ours"].seconds,
            )
        )
    labels = (*(LABELS[way] for way in WAYS), "SLC from the start")
    columns = ("M", *labels, "saved", "ends", "ends, SLC", "M kept by SLC", "tables", "planning")
    return table(f"Fig. 4: hash operations over the naive way, {one.name}", columns, rows)


def _trees(found: Sequence[Compared]) -> Numbers:
    return table(
        f"trees for M = {SHOWN:,}",
        ("stream", "tree"),
        [(one.name, text(one.of(SHOWN).plans["ours"].configuration)) for one in found],
    )


def _total_panel(one: Compared) -> Panel:
    x = [worked.memory for worked in one.at]
    lines = [Line(LABELS[way], x, [worked.share(way) for worked in one.at]) for way in WAYS]
    lines.append(Line("SLC from the start", x, [worked.scratch.per_tuple / worked.queries for worked in one.at], True))
    return Panel(f"Fig. 4(a): {one.name}", "M", "hash operations over naive", tuple(lines), log_x=True, bottom=0)


def _parts_panel(figure: str, one: Compared, way: str) -> Panel:
    x = [worked.memory for worked in one.at]
    parts = {"whole": "total", "during epochs": "during", "ends of epochs": "end"}
    lines = [
        Line(label, x, [getattr(worked.counted[way], part) / 1e6 for worked in one.at]) for label, part in parts.items()
    ]
    title = f"{figure}: {LABELS[way]}, {one.name}"
    return Panel(title, "M", "hash operations (millions)", tuple(lines), log_x=True, bottom=0)


def _scratch_panel(one: Compared) -> Panel:
    x = [worked.memory for worked in one.at]
    parts = {"whole": "total", "during the epoch": "during", "end of the epoch": "end"}
    lines = [
        Line(label, x, [getattr(worked.scratch, part) / 1e6 for worked in one.at]) for label, part in parts.items()
    ]
    title = f"Fig. 4(b): SLC from the start, {one.name}, one epoch"
    return Panel(title, "M", "hash operations (millions)", tuple(lines), log_x=True, bottom=0)


def _sweep_panel(one: Compared) -> Panel:
    lines = []
    for label, swept in (("planned again", one.again), ("planned anew", one.anew), ("one tree", one.kept)):
        lines.append(Line(f"{label}, predicted", swept.memory, swept.predicted))
        lines.append(Line("… counted", swept.memory, swept.counted, dashed=True))
    title = f"predicted and counted: {one.name}"
    return Panel(title, "entries", "hash operations a tuple", tuple(lines), log_x=True, bottom=0)
