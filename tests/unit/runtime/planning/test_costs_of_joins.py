"""Costs of joins: measured by the engine's own tasks and joins, kept, and measured again where what was kept is of no
use. No figure is compared with another run's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from pathlib import Path

import pytest

from penstock.runtime.planning import join_costs
from penstock.sharing.joins.cost import USUAL
from penstock.sharing.model.unit_costs import USUAL as UNITS


@pytest.fixture(autouse=True)
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    join_costs.calibrated_joins.cache_clear()
    yield
    join_costs.calibrated_joins.cache_clear()


def test_what_is_measured_makes_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_costs, "RECORDS", 4_096)
    monkeypatch.setattr(join_costs, "FEWER", 1_024)
    found = asdict(join_costs.measure(UNITS))
    assert all(isfinite(cost) and cost > 0 for cost in found.values()), found


def test_measured_once_unless_what_is_kept_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    monkeypatch.setattr(join_costs, "measure", lambda units: done.append(units) or USUAL)
    for text in (None, "{", "[]", '{"append": 1}', '{"append": -1}'):
        join_costs.calibrated_joins.cache_clear()
        if text is not None:
            (path,) = (tmp_path / "penstock").glob("joins-*.json")
            path.write_text(text)
        assert join_costs.calibrated_joins() == USUAL
        join_costs.calibrated_joins.cache_clear()
        assert join_costs.calibrated_joins() == USUAL
    assert len(done) == 5
