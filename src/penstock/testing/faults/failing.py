"""Sources and sinks that fail or stall, and what a run must make of that.

    source_fails, sink_fails, stall ──► Fault ──► endure: the same output, or one message and then the same output

An error is raised inside the engine, at the point where the system would raise it (`penstock.faults`), in whichever
process comes there first.
"""

from __future__ import annotations

from pathlib import Path

from penstock.testing.faults.outputs import Output, assert_one_message, assert_same_output, require, said
from penstock.testing.faults.processes import run_to_end
from penstock.testing.faults.runs import Ended, Fault, Launch

STAGE, PUBLISH = "stage", "publish"


def source_fails(error: str = "EIO", visit: int = 1, always: bool = False) -> Fault:
    """Reading the source fails, once or from then on in every process; `error` is a name of the module errno."""
    return _raising("source.read", error, visit, always)


def sink_fails(at: str = STAGE, error: str = "EIO", visit: int = 1, always: bool = False) -> Fault:
    """Writing results aside (`stage`) or making them visible (`publish`) fails."""
    if at not in (STAGE, PUBLISH):
        raise ValueError(f"a sink fails at '{STAGE}' or '{PUBLISH}', not at '{at}'")
    return _raising(f"sink.{at}", error, visit, always)


def stall(point: str, seconds: float, visit: int = 1, always: bool = False) -> Fault:
    """Nothing happens for a while."""
    return Fault(point, visit, not always, f"stall={seconds}", always)


def _raising(point: str, error: str, visit: int, always: bool) -> Fault:
    return Fault(point, visit, not always, f"raise={error}", always)


def endure(
    disturbed: Launch, logs: Path, reference: Output, fault: Fault | None = None, mended: Launch | None = None
) -> Ended:
    """Run disturbed; if that failed, see that it said so once, then run `mended` (the same without fault).

    At the end the output must be that of the reference. Returns how the disturbed run ended.
    """
    ended = run_to_end(disturbed, logs, fault)
    story = f"{fault or disturbed}: exit {ended.code}"
    if ended.code != 0:
        assert_one_message(ended, story)
        again = run_to_end(mended or disturbed, logs)
        require(again.code == 0 and not said(again), f"{story}, run again:\n{again.messages[-3000:]}")
    assert_same_output(disturbed.output, reference, story)
    return ended
