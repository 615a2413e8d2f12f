"""Memory of a given configuration, and the optimum of a phantom with all it feeds (smap, Sec. 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from penstock.sharing.allocate.registry import allocator
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.model.collision import MU
from penstock.sharing.model.figures import plant
from penstock.sharing.model.problem import Problem


def allocate(
    name: str, configuration: Configuration, problem: Problem, *, tables: Sequence[bool] | None = None
) -> tuple[float, ...]:
    """The space of each node; they sum up to the problem's memory, those of seed aggregate-tree to that at most.

    Nodes without a table (`tables`) get 0.
    """
    return tuple(allocator(name)(plant(configuration, problem, tables)))


def two_level(memory: float, weights: Sequence[float], passing: float, mu: float = MU) -> list[float]:
    """The optimum for a phantom and all it feeds, Eq. 21 and 22: spaces, the phantom's first.

    With x = μ g/b the cost is c1 + x_0 (C + Σ x_i c2_i), where C = `passing` is what an entry costs that leaves the
    phantom however large the tables below are (f·c1 in the paper).  With weights w_i = g_i h_i c2_i and T = Σ √w_i,

        s_i = M √w_i / (T + √(T² + C M/μ)),    s_0 = M − Σ s_i

    so the phantom has more than half of M, whatever its own g_0 h_0.
    """
    roots = [sqrt(weight) for weight in weights]
    total = sum(roots)
    scale = memory / (total + sqrt(total * total + passing * memory / mu)) if total else 0.0
    return [memory - scale * total, *(scale * root for root in roots)]
