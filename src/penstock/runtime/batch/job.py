"""What the fused source needs to know: pickled once into the source's options, read by every task."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import Source
from penstock.triage.plan import Mode

END, STOPPED = "end", "stopped"


@dataclass(frozen=True)
class Job:
    """One app on one checkpoint. `task_rows`: a task for fewer records costs more than it saves. `until`: the run ends
    with its sources, or goes on until it is stopped; `sampling`: tasks leave samples for the planner; `live`: a file
    with the parallelism of now, where that changes during a run; `tables`: of those that are read again, what the run
    has read when it began, by name. Of live streams `seed` is that of picks, `origin` what processes tell instants by
    (`penstock.clock`), and `overload` what happens in a burst."""

    sources: Mapping[str, Source]
    settings: TaskSettings
    checkpoint: str
    batch_rows: int
    parallelism: int
    until: str = END
    sampling: bool = False
    live: str = ""
    tables: Mapping[str, str] = field(default_factory=dict)
    seed: str = ""
    origin: int = 0
    overload: Mode = Mode.TRIAGE
    task_rows: int = 1


def columns(plan: SharedPlan) -> list[str]:
    """Names of the columns that some query reads, and of the time."""
    return [field.name for field in plan.fields]


def parallelism_now(job: Job) -> int:
    """How many tasks a batch that is cut now should have."""
    if not job.live:
        return job.parallelism
    try:
        return max(1, int(Path(job.live).read_text()))
    except (OSError, ValueError):  # the run is about to end
        return job.parallelism


def encode(job: Job) -> str:
    return base64.b64encode(pickle.dumps(job)).decode()


def decode(text: str) -> Job:
    job = pickle.loads(base64.b64decode(text))
    assert isinstance(job, Job)
    return job
