"""Names of parts, and writing them so that nothing half-written looks whole; used by all sinks.

A part is staged as `QUERY-BATCH-PART-ATTEMPT`, without a suffix: no reader takes it for a result, and two
attempts at one part never write to the same file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.errors import RunError, why
from penstock.faults import reach


def part_name(query: str, batch: int, part: int) -> str:
    """Spark and Arrow overlook files that begin with `_`, but a query may begin with it."""
    return f"{query.lstrip('_') or 'query'}-{batch:08d}-{part:04d}"


def stage_file(path: Path, place: str, write: Callable[[Path], None]) -> None:
    """Write a part aside; a failure leaves nothing behind."""
    reach("merge.write")
    try:
        reach("sink.stage")
        write(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise RunError(
            f"cannot write results to {place}: {why(error)}", "make room or mend the disk, then run again"
        ) from error


def clear_staged(folder: Path, batch: int) -> None:
    """Remove what is staged up to a published batch: parts of attempts whose task Spark ran again."""
    for path in folder.iterdir():
        pieces = path.name.rsplit("-", 3)
        if len(pieces) == 4 and pieces[1].isdigit() and int(pieces[1]) <= batch:
            path.unlink(missing_ok=True)
