"""What an engine's process is asked and what it answers: JSON in a file, JSON on the last line of its output.

Between `benchmarks.comparisons.peers`, which starts the processes, and `benchmarks.engines`, whose modules call
`serve`. Cold times count from `Job.started_at`, taken before the process is started: they include imports and the start
of a Java machine.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure.cpu import end_with_parent
from benchmarks.measure.keys import Key, distinct, keys_of

MARK = "penstock-bench-result "
PARQUET, DISCARD = "parquet", "discard"
JOINED = ("g", "h", "window_start", "n", "total", "most")  # columns of a result of `JoinJob`
NULL_TEXT, SCHEMA = "\\N", "schema.parquet"  # in folders of text files


@dataclass(frozen=True)
class EngineJob:
    """Count rows and sum `value` per keys of `queries` and window, over the first `rows` rows: the whole `file`.

    Keys are columns, or prefixes of such (`benchmarks.measure.keys`).

    `sink` says where results go: to Parquet files below `work`, or nowhere once they are computed. The watermark is
    `delay_seconds` behind the greatest time; without, windows close when the stream ends.
    """

    file: str  # one Parquet file; for some streaming peers a folder of part files, or of text files
    rows: int
    queries: tuple[tuple[str, ...], ...]
    work: str  # an empty folder of the engine's own
    threads: int
    started_at: float  # seconds since 1970
    mode: str = ""
    time: str = "ts"
    value: str = "bytes"
    window_seconds: int = 300
    batch_rows: int = 500_000
    sink: str = PARQUET
    delay_seconds: int | None = 1

    @property
    def window(self) -> int:
        """Length of a window in microseconds."""
        return self.window_seconds * 1_000_000

    @property
    def keys(self) -> tuple[Key, ...]:
        """Of all queries, each once."""
        return distinct(self.queries)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that queries are grouped by, each once."""
        return tuple(dict.fromkeys(one.column for one in self.keys))

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the keys of all queries, each once."""
        return tuple(one.name for one in self.keys)

    def names(self, query: int) -> tuple[str, ...]:
        """Names of the keys of a query."""
        return tuple(one.name for one in keys_of(self.queries[query]))


@dataclass(frozen=True)
class PacketJob:
    """Answer the queries of `benchmarks.packets.queries` over the first `rows` packets: the whole capture `file`."""

    file: str
    rows: int
    work: str
    threads: int
    started_at: float
    mode: str = ""
    batch_rows: int = 1_000_000


@dataclass(frozen=True)
class JoinJob:
    """Join two streams by k in windows: count(*), sum(x), max(y) by (g, h), over all `rows` records of each file.

    The columns of `JOINED` go to Parquet files below `work`.
    """

    left: str  # a Parquet file each; for Spark's streams a folder of part files
    right: str
    rows: int
    work: str
    threads: int
    started_at: float
    mode: str = ""
    range_seconds: int = 100
    slide_seconds: int = 100
    batch_rows: int = 500_000  # of each

    @property
    def range(self) -> int:
        """Length of a window in microseconds."""
        return self.range_seconds * 1_000_000

    @property
    def slide(self) -> int:
        return self.slide_seconds * 1_000_000


Job = EngineJob | PacketJob | JoinJob


@dataclass(frozen=True)
class Answer:
    """`seconds` (warm) stand for `rows` rows; `seconds_cold` from the start of the process to the first result."""

    version: str
    seconds: float
    rows: int
    seconds_cold: float
    digests: tuple[str, ...] = ()  # of each query, in order; of discarded rows `digest.counted`, or none
    note: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    cpu_seconds: float | None = None  # of all processes, for the same rows as `seconds`


def serve_packets(run: Callable[[PacketJob], Answer]) -> None:
    """The same of an engine of the benchmark `packets`."""
    answer = run(PacketJob(**json.loads(Path(sys.argv[1]).read_text())))
    print(MARK + json.dumps(asdict(answer)), flush=True)


def serve_joins(run: Callable[[JoinJob], Answer]) -> None:
    """The same of an engine of the benchmark `aggjoin`."""
    end_with_parent()
    answer = run(JoinJob(**json.loads(Path(sys.argv[1]).read_text())))
    print(MARK + json.dumps(asdict(answer)), flush=True)


def serve(run: Callable[[EngineJob], Answer]) -> None:
    """Main function of an engine module: `python -m benchmarks.engines.NAME JOB.json`."""
    end_with_parent()
    given = json.loads(Path(sys.argv[1]).read_text())
    given["queries"] = tuple(tuple(keys) for keys in given["queries"])
    answer = run(EngineJob(**given))
    print(MARK + json.dumps(asdict(answer)), flush=True)


def parse_answer(output: str) -> Answer | None:
    """The answer in an engine's output, or None where it gave none."""
    lines = [line for line in output.splitlines() if line.startswith(MARK)]
    if not lines:
        return None
    given = json.loads(lines[-1][len(MARK) :])
    return Answer(**{**given, "digests": tuple(given["digests"])})


def elapsed(job: Job) -> float:
    """Seconds since the engine's process was started."""
    return time.time() - job.started_at


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = action()
    return time.perf_counter() - begin, result
