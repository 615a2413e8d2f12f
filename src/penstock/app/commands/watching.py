"""A run with a progress display, which signals end between two batches."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.app.commands.commands import errors
from penstock.errors import PenstockError, RunError, why

WAITING = "waiting for files"


def watch(loaded: Any, checkpoint: str | None, settings: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """Run a loaded app to its end with a progress display; Ctrl-C and SIGTERM stop it between two batches."""
    from penstock.monitor.progress import ProgressDisplay

    try:
        with ProgressDisplay(errors, quiet) as display:
            start = partial(loaded.start, checkpoint, **settings)
            summary = _await_end(start, display)
    except OSError as error:
        place = error.filename or f"checkpoint {checkpoint or 'in the folder for temporary files'}"
        raise RunError(f"{place}: {why(error)}", "make room or mend the disk, then run again") from error
    finally:
        if "penstock.runtime.spark.session" in sys.modules:
            sys.modules["penstock.runtime.spark.session"].fall_silent()
    loaded.close()
    return summary


def _await_end(start: Callable[..., Any], display: Any) -> dict[str, Any]:
    running = start(listener=display.observe, on_phase=display.phase)
    display.phase("first batch")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A flag, not an exception: one raised inside py4j would leave its connection in disorder.
        signal.signal(number, lambda *_: stopping.set())
    try:
        while not running.await_end(1):
            if stopping.is_set():
                display.phase("stopping after this batch")
                running.stop()
                break
            if running.waiting():
                display.phase(WAITING)
    except PenstockError as error:  # whatever was wrong, it was met while running
        raise RunError(error.fact, error.hint) from error
    summary: dict[str, Any] = running.summary()
    return summary
