"""The straight lines that the smap paper puts in place of collision rates."""

from __future__ import annotations

import pytest

from experiments.models.rates import linear_rate, low_rate
from penstock.sharing.model.collision import rate


def test_the_line_is_good_above_a_fifth_only() -> None:
    for ratio in (0.25, 0.4, 0.6, 0.8, 1.0):
        assert linear_rate(ratio * 1e4, 1e4) == pytest.approx(rate(ratio * 1e4, 1e4), rel=0.06)
    assert linear_rate(100, 1e4, 5) == pytest.approx(linear_rate(100, 1e4) / 5)
    for ratio in (0.001, 0.01, 0.05):
        assert low_rate(ratio * 1e6, 1e6) == pytest.approx(rate(ratio * 1e6, 1e6), rel=0.02)
        assert linear_rate(ratio * 1e6, 1e6) > 1.7 * rate(ratio * 1e6, 1e6)
