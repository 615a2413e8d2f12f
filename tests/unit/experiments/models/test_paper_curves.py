"""The papers' eviction curves, by their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.models.curves import Lemma, Whole, below
from penstock.sharing.model.eviction import Che, Curve
from penstock.sharing.model.popularity import fitted, zipf


def test_spread_decides_how_flat_it_becomes() -> None:
    stream = zipf(1000, 1.0)
    same = below(stream, 1.0, 1e5, 1e5, 1e6)
    even = below(stream, 0.0, 1e5, np.inf, 1e7)
    assert same.chance == pytest.approx(stream.chance, rel=1e-6)
    assert even.chance.max() / even.chance.min() == pytest.approx(1.0, rel=0.05)
    half = below(stream, 0.5, 1e5, 1e6, 1e6)
    assert 2 < half.chance.max() / half.chance.min() < 500
    for popularity in (same, even, half):
        assert float(popularity.chance @ popularity.groups) == pytest.approx(1.0)


def test_a_tiny_table_seems_free_to_the_paper() -> None:
    """Where n(1 − α) < g: a hundredth of the space passes on as little as all of it.  LRU tables do not."""
    groups, tuples = 10_000.0, 12_000.0
    lemma, che = Lemma(groups, 0.85), Che(fitted(groups, 0.85, tuples), tuples)
    assert lemma.out(100.0, tuples) == groups == lemma.out(groups, tuples)
    assert che.out(100.0, tuples) > 1.1 * che.out(groups, tuples)


@pytest.mark.parametrize("curve", [Lemma(5000, 0.5), Lemma(5000, 0.5, exact=True), Whole(5000)], ids=repr)
def test_points_are_on_the_papers_curves(curve: Curve) -> None:
    entries, fixed, slopes, floor = curve.points
    tuples = 50_000.0
    outs = np.maximum(fixed + slopes * tuples, floor)
    assert outs == pytest.approx([curve.out(float(b), tuples) for b in entries], rel=1e-6)
