"""The fault kit: disturb runs of the command line in every way we know, and see what is left.

| module | gives |
| --- | --- |
| `runs` | `start` a run as a process, with a `Fault` at a named point; `wait` for it |
| `processes` | its driver, JVM and workers: `kill`, `strike` at a moment, `clean_up` |
| `outputs` | `collect` and `digest` what readers see; `assert_same_output` |
| `failing` | a source or a sink that fails or stalls; `endure`: same output, or one message and then the same output |
| `disk` | `small_disk`: a file system that fills |
| `damage` | bytes flipped, files cut, zeroed or gone; the files of a run by kind |
| `clock` | clocks that are wrong, jump or drift |
| `campaign` | seeded random kills of any app |

Users write `from penstock.testing import faults` and find all of it here; docs/testing.md shows how.
"""

from __future__ import annotations

from penstock.testing.faults.campaign import Campaign, Kill, Lineage, random_kills, run_campaign
from penstock.testing.faults.clock import drift, jump, skewed
from penstock.testing.faults.damage import Damage, cut, flip, gone, spoil, targets, ways, zeroed
from penstock.testing.faults.disk import LIMITED, MOUNTED, Disk, small_disk
from penstock.testing.faults.failing import endure, sink_fails, source_fails, stall
from penstock.testing.faults.outputs import (
    Output,
    assert_no_traceback,
    assert_one_message,
    assert_same_output,
    collect,
    digest,
    said,
)
from penstock.testing.faults.processes import (
    DRIVER,
    JVM,
    WORKER,
    Process,
    Strike,
    alive,
    await_orphans,
    clean_up,
    kill,
    run_to_end,
    strike,
)
from penstock.testing.faults.runs import (
    Ended,
    Fault,
    Launch,
    Running,
    await_batches,
    await_that,
    committed,
    start,
    wait,
)

__all__ = [
    "DRIVER", "JVM", "LIMITED", "MOUNTED", "WORKER",
    "Campaign", "Damage", "Disk", "Ended", "Fault", "Kill", "Launch", "Lineage", "Output", "Process", "Running",
    "Strike",
    "alive", "assert_no_traceback", "assert_one_message", "assert_same_output", "await_batches", "await_orphans",
    "await_that", "clean_up", "collect", "committed", "cut", "digest", "drift", "endure", "flip", "gone", "jump",
    "kill", "random_kills", "run_campaign", "run_to_end", "said", "sink_fails", "skewed", "small_disk", "source_fails",
    "spoil", "stall", "start", "strike", "targets", "wait", "ways", "zeroed",
]  # fmt: skip
