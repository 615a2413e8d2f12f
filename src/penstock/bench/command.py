"""What `penstock bench` calls: benchmarks by name, each printed as a table and handed on as JSON data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from penstock.bench import multiquery, table
from penstock.errors import ConfigError

BENCHMARKS = {"multiquery": multiquery.run}


def run_benchmarks(
    names: Sequence[str], rows: int, quick: bool, engines: list[str] | None, work: Path | None, console: Console
) -> Iterator[dict[str, Any]]:
    """Run these in the folder `work`, or in one that is removed at the end; progress and tables go to `console`."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise ConfigError(f"unknown benchmark '{unknown[0]}'", f"benchmarks are {', '.join(BENCHMARKS)}")
    if rows < 1:
        raise ConfigError(f"a benchmark needs records, not {rows} of them")
    with ExitStack() as stack:
        folder = work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        for name in names:
            with console.status(name) as status:
                report = BENCHMARKS[name](
                    work=folder.absolute(), rows=rows, quick=quick, engines=engines or None, progress=status.update
                )
            table.show(report, console)
            yield report
