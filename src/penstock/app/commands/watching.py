"""A run with a progress display, which signals end between two batches."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from penstock.app.commands import light
from penstock.app.commands.commands import errors
from penstock.errors import PenstockError, RunError, why

if TYPE_CHECKING:
    from penstock.runtime.batch.report import BatchReport
    from penstock.state.manifest import Manifest

WAITING = "waiting for files"
leaving = False  # whether this process ends with its command
SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class Stopped(Exception):
    """A signal ended a run before its sources did; `summary` is what it has come to, None where that is nothing."""

    def __init__(self, number: int, summary: dict[str, Any] | None, checkpoint: str | None) -> None:
        super().__init__(number)
        self.number, self.summary, self.checkpoint = number, summary, checkpoint

    @property
    def code(self) -> int:
        """Of the process, as shells have it."""
        return 128 + self.number

    def __str__(self) -> str:
        by = f"stopped by {SIGNALS[signal.Signals(self.number)]}"
        if self.summary is None:
            return f"{by} before there was a result"
        if self.checkpoint is None:
            return f"{by} before the sources ended; the next run starts anew: with --checkpoint DIR it would go on"
        return f"{by} before the sources ended; the next run on checkpoint {self.checkpoint} goes on from there"


class Silence:
    """A display that shows nothing."""

    def phase(self, name: str) -> None: ...

    def observe(self, report: BatchReport, manifest: Manifest) -> None: ...


class Watched(Protocol):
    """What can be watched: an app, or one that is analysed."""

    @property
    def with_spark(self) -> bool: ...

    @property
    def start(self) -> Callable[..., Any]: ...

    def close(self, wait: bool) -> None: ...


def watch(loaded: Watched, checkpoint: str | None, settings: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """Run a loaded app to its end with a progress display; the summary.

    Ctrl-C and SIGTERM stop it between two batches; unless it was to go on until then, that is `Stopped`.
    """
    if leaving and not loaded.with_spark:
        light.without_pandas()
    asked: list[int] = []  # signals, as they come
    try:
        start = partial(loaded.start, checkpoint, **settings)
        if quiet:
            summary = _await_end(start, Silence(), asked)
        else:
            from penstock.monitor.progress import ProgressDisplay

            with ProgressDisplay(errors) as display:
                summary = _await_end(start, display, asked)
    except KeyboardInterrupt:
        raise Stopped(signal.SIGINT, None, checkpoint) from None
    except Exception as error:
        raise _told(error, checkpoint) from error
    finally:
        if "penstock.runtime.spark.session" in sys.modules:
            sys.modules["penstock.runtime.spark.session"].fall_silent()
    _close(loaded)
    if asked and not summary["ended"] and settings.get("until") != "stopped":
        raise Stopped(asked[0], summary, checkpoint)
    return summary


def _await_end(start: Callable[..., Any], display: Any, asked: list[int]) -> dict[str, Any]:
    running = start(listener=display.observe, on_phase=display.phase)
    display.phase("first batch")
    for number in SIGNALS:
        # A note, not an exception: one raised inside py4j would leave its connection in disorder.
        signal.signal(number, lambda number, _: asked.append(number))
    try:
        while not running.await_end(1):
            if asked:
                display.phase("stopping after this batch")
                running.stop()
                break
            if running.waiting():
                display.phase(WAITING)
    except PenstockError as error:  # whatever was wrong, it was met while running
        raise RunError(error.fact, error.hint) from error
    summary: dict[str, Any] = running.summary()
    return summary


def _told(error: Exception, checkpoint: str | None) -> Exception:
    """What to say of an error: of what the JVM's end makes happen always the same."""
    from penstock.runtime.spark.gone import jvm_gone, tells_of_it

    if isinstance(error, PenstockError):
        return error
    if tells_of_it(error):
        return jvm_gone()
    if isinstance(error, OSError):
        place = error.filename or f"checkpoint {checkpoint or 'in the folder for temporary files'}"
        return RunError(f"{place}: {why(error)}", "make room or mend the disk, then run again")
    return error


def _close(loaded: Watched) -> None:
    """All is done: a JVM that is gone by now is missed by nobody."""
    from penstock.runtime.spark.gone import tells_of_it

    try:
        loaded.close(wait=not leaving)
    except Exception as error:
        if not tells_of_it(error):
            raise
