"""What `aggjoin` reads: two generated streams, in order of time, that are joined by a key.

    a: ts, k, g, x ┐
                   ├─ joined by k in windows, grouped by (g, h): count(*), sum(x), max(y)
    b: ts, k, h, y ┘

| case | records of a window, each side | keys | groups |
| --- | --- | --- | --- |
| `few` | 5,000 | 10 | 150 × 1 |
| `dense` | 50,000 | 100 | 150 × 10 |
| `wide` | 200,000 | 20,000 | 150 × 10 |
| `once` | 200,000 | 200,000: each about once on a side | 150 × 10 |

Tumbling windows take twelve ranges of it; windows that slide by a tenth take 21 slides, of which twelve windows are
whole as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Progress = Callable[[str], None]

RANGE = 100  # seconds of a window
WINDOWS = 12
STEPS = 10  # slides in a range
START = 1_767_225_600 * 1_000_000  # microseconds; windows begin there
GREATEST = 1500  # of the values that are aggregated
SIDES = (("a", "g", "x"), ("b", "h", "y"))
GROUP_ROWS = 1 << 15  # at most


@dataclass(frozen=True)
class JoinCase:
    """`rows` of a window on each side, evenly over time; keys and groups are drawn evenly."""

    name: str
    rows: int
    keys: int
    groups: tuple[int, int]

    def shortened(self, rows: int) -> JoinCase:
        """With at most so many records in a window, and as many for each key."""
        fewer = max(STEPS, min(self.rows, rows) // STEPS * STEPS)
        return replace(self, rows=fewer, keys=max(1, self.keys * fewer // self.rows))

    @property
    def group_rows(self) -> int:
        """Records of a row group: micro-batches are cut between them."""
        return min(GROUP_ROWS, max(1000, self.rows // STEPS))

    @property
    def what(self) -> str:
        groups = " × ".join(map(str, self.groups))
        return f"{self.rows:,}² records a window, {self.keys:,} keys, {groups} groups"


CASES = (
    JoinCase("few", 5_000, 10, (150, 1)),
    JoinCase("dense", 50_000, 100, (150, 10)),
    JoinCase("wide", 200_000, 20_000, (150, 10)),
    JoinCase("once", 200_000, 200_000, (150, 10)),
)


@dataclass(frozen=True)
class Movement:
    """How windows move on, and how many slides of the stream are read; a window has `steps` of them."""

    name: str
    steps: int
    slides: int

    @property
    def slide_seconds(self) -> int:
        return RANGE // self.steps

    def rows(self, case: JoinCase, slides: int | None = None) -> int:
        """Records of one side in so many slides."""
        return case.rows * (self.slides if slides is None else slides) // self.steps

    def pairs(self, case: JoinCase, slides: int | None = None) -> int:
        """Pairs of records (about) that the windows of so many slides hold, one window after the other."""
        count = self.slides if slides is None else slides
        held = (min(n, self.steps, count, count + self.steps - n) for n in range(1, count + self.steps))
        return round(sum((each / self.steps) ** 2 for each in held) * case.rows**2 / case.keys)


TUMBLING = Movement("tumbling", 1, WINDOWS)
SLIDING = Movement("sliding by a tenth", STEPS, WINDOWS + STEPS - 1)
MOVEMENTS = (TUMBLING, SLIDING)


def join_files(work: Path, case: JoinCase, tell: Progress) -> tuple[Path, Path]:
    """Both streams, of all windows; made when they are not there yet."""
    made = []
    for number, (side, group, value) in enumerate(SIDES):
        name = f"join-{side}-{case.rows}-{case.keys}-{case.groups[number]}.parquet"
        made.append(work / name)
        if not made[-1].exists():
            rows = case.rows * WINDOWS
            tell(f"generating {rows:,} records of {case.name}")
            rng = np.random.default_rng([number, case.rows, case.keys])
            step = RANGE * 1_000_000 / case.rows
            times = START + ((np.arange(rows) + number / 2) * step).astype(np.int64)  # one side between the other's
            table = pa.table(
                {
                    "ts": pa.array(times, pa.timestamp("us", "UTC")),
                    "k": pa.array(rng.integers(0, case.keys, rows), pa.int32()),
                    group: pa.array(rng.integers(0, case.groups[number], rows), pa.int32()),
                    value: pa.array(rng.integers(0, GREATEST, rows), pa.int32()),
                }
            )
            aside = work / f".{name}.tmp"
            pq.write_table(table, aside, row_group_size=case.group_rows)
            aside.rename(made[-1])
    left, right = made
    return left, right
