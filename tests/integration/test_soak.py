"""The soak for ten minutes: under load, killed and started again, nothing grows and every window comes once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.soak import soak

SEED = int(os.environ.get("PENSTOCK_SEED", "20261116"))
MINUTES = float(os.environ.get("PENSTOCK_SOAK_MINUTES", "10"))


@pytest.mark.slow
def test_ten_minutes(tmp_path: Path) -> None:
    done = soak(tmp_path / "soak", MINUTES, SEED)
    for finding in done.findings:
        print("ok  " if finding.holds else "FAIL", finding.name, finding.detail)
    assert done.holds, "\n".join(f"{one.name}: {one.detail}" for one in done.findings if not one.holds)
    assert sum(done.driven.kills.values()) >= 3
    assert done.driven.samples[-1].phase >= 3
