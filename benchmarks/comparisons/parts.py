"""Where penstock's time goes, for `benchmarks.comparisons.multiquery`: nanoseconds of processor time a record and a
group, by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.comparisons.peers import run_engine
from benchmarks.data import files as data
from benchmarks.measure import jobs
from benchmarks.measure.job import Answer
from penstock.runtime.machine import without_huge_pages

MOST_ROWS = 2_000_000  # a part of the records is enough
TIMEOUT = 1800.0


def measured(
    names: Sequence[str], queries: int, rows: int, work: Path, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """For each of these data: the plan, numbers of records and groups, and the parts; `note` where there is none."""
    without_huge_pages()  # as workers do; processes that are started here inherit it
    found = []
    for name in names:
        given = data.DATA[name](work, rows, progress)
        if isinstance(given, str):
            continue  # that was told
        count = min(MOST_ROWS, given.rows)
        job = replace(
            jobs.job_of(given, queries, work), file=str(data.prefix(given.file, count, work)), rows=count, mode="auto"
        )
        progress(f"penstock: parts of {count:,} records of {name}")
        answer = run_engine("penstock_parts", "", job, TIMEOUT)
        told = answer.extra if isinstance(answer, Answer) else {"note": answer}
        found.append({"data": name, "queries": queries, **told})
    return found
