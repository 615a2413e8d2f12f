"""Kills while plans of joins change: a stream that drifts back and forth, and runs again after each kill.

The output is that of an undisturbed run that keeps one plan, whatever was stored early or late when a kill came.
PENSTOCK_SEED moves the campaign.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_drifting_joins import app_text, slow_costs, write_drifting

import penstock as ps
from penstock.sharing.joins.plans import plan_name
from penstock.sharing.plan import joins_in
from penstock.state import versions
from penstock.testing import faults
from penstock.testing.faults import Ended, Fault, Kill, Launch, Lineage, Output, run_campaign

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
KILLS = 25
BATCH = 10_000


@dataclass(frozen=True)
class Reference:
    app: Path
    output: Output
    cache: Path


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    place = tmp_path_factory.mktemp("reference")
    write_drifting(place)
    app = place / "app.sql"
    app.write_text(app_text(place, 4, 1))
    with slow_costs(place / "cache"):
        run = ps.App(master="process").sql(app.read_text()).start(
            str(place / "checkpoint"), output=str(place / "out"), batch_rows=BATCH, parallelism=2, joins="early"
        )  # fmt: skip
        run.await_end()
        yield Reference(app, faults.collect(place / "out"), place / "cache")


def launches(reference: Reference) -> Callable[[Path], Launch]:
    def launch(place: Path) -> Launch:
        made = Launch(reference.app, place / "checkpoint", place / "out", BATCH, ("--parallelism", "2"))
        return made.without_spark().with_environment(XDG_CACHE_HOME=str(reference.cache))

    return launch


def last_plans(checkpoint: Path) -> list[str]:
    numbers = sorted(int(path.stem) for path in (checkpoint / versions.FOLDER).glob("[0-9]*.json"))
    found = [versions.load(checkpoint, number) for number in numbers]
    return [plan_name(joins_in(version.plans)["j"].early) for version in found]


@pytest.mark.slow
def test_a_kill_before_and_after_a_change_of_plans(reference: Reference, tmp_path: Path) -> None:
    """The driver: before the batch is committed that shows that another plan is cheaper, and right after."""
    lineage = Lineage(launches(reference)(tmp_path), tmp_path / "logs")
    choose, seen = random.Random(1), set[str]()
    try:
        for kill in (
            Kill(Fault("manifest.write", 8)),
            Kill(Fault("manifest.written", 2)),
            Kill(Fault("sink.rename", 2)),
        ):
            _, hit = lineage.disturb(kill, choose)
            assert hit, lineage.log
            seen |= set(last_plans(lineage.launch.checkpoint))
        ended, _ = lineage.disturb(Kill(), choose)
        assert ended.code == 0, ended.messages
        seen |= set(last_plans(lineage.launch.checkpoint))
        assert len(seen) > 1, seen
        faults.assert_same_output(lineage.launch.output, reference.output, "\n".join(lineage.log))
    finally:
        lineage.clean_up()


@pytest.mark.slow
def test_a_campaign_of_kills_while_plans_of_joins_change(reference: Reference, tmp_path: Path) -> None:
    done = run_campaign(launches(reference), tmp_path, reference.output, KILLS, SEED, check=has_changed)
    assert done.landed >= KILLS


def has_changed(lineage: Lineage, ended: Ended) -> None:
    """Every lineage ends with the third version, or a later one: there are no tables to plan, so plans of joins were
    changed, twice at least."""
    newest = versions.newest(lineage.launch.checkpoint)
    assert newest is not None
    assert newest >= 2, "\n".join(lineage.log)
