"""The runs of this process that hold a checkpoint: a cell of a notebook may be run again while the first one goes on.

start again on the same checkpoint:  the run has ended by itself   ──► it is closed, the new one goes on
                                     it goes on                    ──► refused, or with `replace` stopped first
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, PenstockError

if TYPE_CHECKING:
    from penstock.runtime.run.run import Run

_runs: dict[str, Run] = {}  # by checkpoint
MOMENT = 0.01


def note(run: Run) -> None:
    _runs[os.path.realpath(run.checkpoint)] = run


def forget(run: Run) -> None:
    if _runs.get(os.path.realpath(run.checkpoint)) is run:
        del _runs[os.path.realpath(run.checkpoint)]


def make_way(checkpoint: str, replace: bool) -> None:
    """See that no run of this process stands in the way of a new one on that checkpoint."""
    earlier = _runs.get(os.path.realpath(checkpoint))
    if earlier is None or _ended(earlier):
        return
    if not replace:
        raise ConfigError(
            f"a run of this process goes on with checkpoint {earlier.checkpoint}",
            "end it with run.stop(), or start with replace=True: that stops it first, then goes on from there; "
            "a run beside it needs its own checkpoint and output",
        )
    earlier.stop()


def _ended(run: Run) -> bool:
    """Whether the run has come to its end by itself; then it is closed. What went wrong in it is of the past."""
    try:
        return run.await_end(MOMENT)
    except PenstockError:
        return True
