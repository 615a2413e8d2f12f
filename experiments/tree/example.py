"""aggregate-tree, Example 1 and Fig. 1: three strategies for {AB, BC, CD}, and when each is best (Sec. III-D).

    1   AB BC CD                 naive
    2   ABCD(AB BC CD)           all memory to ABCD
    3   ABCD(AB BCD(BC CD))      divided between ABCD and BCD

The paper says which of them is best by the numbers of records and groups and by the memory; here each case is made of
random records and run, the memory of the third divided as its cost is least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.kit.report import Claim, ExperimentSettings, InputAnswer, judged
from experiments.models.notation import parse
from experiments.tree.plans import TreePlanner
from experiments.tree.streams import RecordEpoch
from penstock.sources.generate.synthetic import mix

STRATEGIES = ("AB BC CD", "ABCD(AB BC CD)", "ABCD(AB BCD(BC CD))")
QUERIES = ("AB", "BC", "CD")


@dataclass(frozen=True)
class StrategyCase:
    """Records, values of A and of the others, memory over the groups of ABCD; and which strategy is best."""

    name: str
    tuples: int
    first: int
    others: int
    share: float
    best: int


CASES = (
    StrategyCase("n ≫ g, M large, g of BCD like that of ABCD", 200_000, 2, 14, 1.0, 2),
    StrategyCase("n ≈ g", 20_000, 40, 40, 1.0, 1),
    StrategyCase("n ≫ g, M small", 200_000, 14, 14, 0.02, 1),
    StrategyCase("n ≫ g of ABCD ≫ g of BCD, M large", 200_000, 60, 6, 1.5, 3),
)


def costs_of(case: StrategyCase, settings: ExperimentSettings) -> list[float]:
    """Hash operations a record of each strategy, counted."""
    rng = np.random.default_rng(settings.seed)
    columns = {
        letter: mix(rng.integers(0, case.first if letter == "A" else case.others, case.tuples), 50 + number)
        for number, letter in enumerate("ABCD")
    }
    epoch = RecordEpoch(columns)
    planner = TreePlanner(epoch)
    memory = case.share * epoch.groups("ABCD")
    return [planner.allocated(parse(strategy), QUERIES, memory).run([epoch]).per_tuple for strategy in STRATEGIES]


def example_claims(settings: ExperimentSettings) -> list[Claim]:
    answers = []
    for case in CASES:
        costs = costs_of(case, settings)
        told = ", ".join(f"{cost:.2f}" for cost in costs)
        answers.append(
            InputAnswer(case.name, f"{told}, best {1 + int(np.argmin(costs))}", 1 + int(np.argmin(costs)) == case.best)
        )
    return [
        judged(
            "Example 1: which of the strategies of Fig. 1 is best",
            "; ".join(f"{case.name}: strategy {case.best}" for case in CASES),
            answers,
            "hash operations a tuple of strategies 1, 2, 3, counted; uniform tuples of four attributes apart from each "
            "other; M over the groups of ABCD " + ", ".join(f"{case.share:g}" for case in CASES),
        )
    ]
