"""The command line, with all that it decides about batches kept in a folder: a checkpoint forgets what is done.

    KEPT_DECISIONS=folder python kept_decisions.py run app.sql ...

A decision is kept just before it is logged. One that a kill leaves unlogged is made again, and kept in its place.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from penstock.state.protocol import Offset

FOLDER = "KEPT_DECISIONS"


def kept(folder: Path) -> list[Offset]:
    """The decisions of a checkpoint that has come to its end, in order."""
    from penstock.runtime.batch.offsets import read_decision

    return [read_decision(path) for path in sorted(folder.glob("[0-9]*.json"))]


def main() -> None:
    from penstock.app.cli import program
    from penstock.runtime.engine import batches

    log, folder = batches.log_decision, Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)

    def log_and_keep(path: Path, offset: Offset) -> None:
        aside = folder / f".{path.name}"
        aside.unlink(missing_ok=True)
        log(aside, offset)
        shutil.move(aside, folder / path.name)
        log(path, offset)

    batches.log_decision = log_and_keep
    program()


if __name__ == "__main__":
    main()
