"""Programs that have their stream in memory, killed and started again: the output is the same, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
import numpy as np, pandas as pd
import penstock as ps

rows, dice = 20_000, np.random.default_rng(3)
frame = pd.DataFrame({
    "ts": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(rows) * 5 + dice.integers(0, 400, rows), "ms"),
    "host": np.array(["10.0.0.1", "10.0.0.2", "::1", None])[dice.integers(0, 4, rows)],
    "n": dice.integers(0, 9, rows),
})
app = ps.App(master="process").stream("t", frame, types={"host": "INET"}, delay="300 ms")
app.query("hosts", "SELECT host, count(*) AS n, sum(n) AS total FROM t [RANGE '5 seconds'] GROUP BY host")
app.query("rows", "SELECT n, count(*) AS rows FROM t [ROWS 3000 SLIDE 1000] GROUP BY n")
run = app.start(sys.argv[1] + "/ckpt", output=sys.argv[1] + "/out", parallelism=2, batch_rows=1_500)
run.await_end()
found = {name: sorted(map(str, run.arrow(name).to_pylist())) for name in ("hosts", "rows")}
print(json.dumps({"rows": found, "accounting": run.summary()["accounting"]}))
"""


def launch(place: Path, fault: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PENSTOCK_FAULT": fault} if fault else {})}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place)], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("order", [("manifest.write:2", "sink.rename:3", "manifest.written:2", "driver.start")])
def test_kills_change_nothing(order: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole = launch(tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    for fault in order:
        assert launch(tmp_path / "killed", fault).returncode == -signal.SIGKILL, fault
    last = launch(tmp_path / "killed")
    assert last.returncode == 0, last.stderr
    assert json.loads(last.stdout) == json.loads(whole.stdout)
    assert len(json.loads(whole.stdout)["rows"]["hosts"]) == 4 * 21
    assert len(list((tmp_path / "killed" / "ckpt" / "tables").iterdir())) == 1
