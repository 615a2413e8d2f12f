"""Starting again in one process, as a cell of a notebook does: without Spark, which makes no difference to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ConfigError

ROWS, BATCH = 20_000, 1_000


def app(folder: Path) -> ps.App:
    made = ps.App(master="process").stream("s", "generate:uniform", delay="1 second", options={"rows": str(ROWS)})
    return made.query("q", "SELECT a, count(*) AS n FROM s [RANGE '1 second'] GROUP BY a", f"parquet:{folder}/out")


def start(made: ps.App, folder: Path, checkpoint: str | None = "ckpt", **settings: Any) -> Any:
    place = None if checkpoint is None else str(folder / checkpoint)
    return made.start(place, batch_rows=BATCH, parallelism=1, **settings)


def test_while_a_run_goes_on(tmp_path: Path) -> None:
    first = start(app(tmp_path), tmp_path, until="stopped")
    for settings in ({}, {"until": "stopped"}):
        with pytest.raises(ConfigError, match="a run of this process goes on with checkpoint") as error:
            start(app(tmp_path), tmp_path, **settings)
        assert "replace=True" in error.value.hint
    with pytest.raises(ConfigError, match="another run is writing to output folder"):
        start(app(tmp_path), tmp_path, "other")
    second = start(app(tmp_path), tmp_path, replace=True)
    second.await_end()
    assert not first.progress()["active"]
    assert second.summary()["accounting"]["exact"] == ROWS
    assert second.summary()["ended"]


def test_without_a_checkpoint_it_is_the_app_that_runs(tmp_path: Path) -> None:
    made = app(tmp_path)
    first = start(made, tmp_path, None, until="stopped")
    with pytest.raises(ConfigError, match="a run of this process goes on"):
        start(made, tmp_path, None)
    second = start(made, tmp_path, None, replace=True, overwrite=True)
    second.await_end()
    assert not first.progress()["active"]
    assert second.summary()["accounting"]["exact"] == ROWS


def test_after_a_run_that_nobody_awaited(tmp_path: Path) -> None:
    made = app(tmp_path)
    first = start(made, tmp_path)
    while not first._driver.manifest.ended:
        first._loop.wait(0.05)
    second = start(made, tmp_path)
    second.await_end()
    assert second.summary()["accounting"]["input"] == ROWS
    with pytest.raises(ConfigError, match="already holds results of another run"):
        start(made, tmp_path, "other")
    third = start(made, tmp_path, "other", overwrite=True)
    third.await_end()
    assert third.summary()["accounting"]["exact"] == ROWS
