"""smap, Section 8.2: whether what tables cost is c1 for each tuple that comes in and c2 for each that goes out.

The paper fits both to logs of its system, a record for every 10 seconds of a query: processor cycles, tuples in, tuples
out. Here a query's table is the engine's direct-mapped one, what it evicts goes into the engine's exact table, and a
record is a stretch of a stream: processor time is measured, tuples in and out are counted. Tables of several sizes
take turns, so that the share that goes out differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import thread_time_ns

import numpy as np

from experiments.kit.report import Claim, ExperimentSettings, InputAnswer, Numbers, judged, table
from experiments.kit.streams import PaperStream
from experiments.tree.streams import grouped
from experiments.tree.tables import DirectTable

RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # g/b
STRETCHES, REPEATS = 12, 5
SHORTEST, LONGEST = 40_000, 200_000  # tuples of a stretch


@dataclass(frozen=True)
class FittedCosts:
    """c1 and c2 in nanoseconds, and the mean of the squared errors as parts of what was measured."""

    stream: str
    entering: float
    leaving: float
    error: float
    records: int

    @property
    def ratio(self) -> float:
        return self.leaving / self.entering


def fitted(stream: PaperStream, letters: str, settings: ExperimentSettings) -> FittedCosts:
    """Least squares of relative errors, over all stretches and sizes of the table."""
    rng = np.random.default_rng(settings.seed)
    codes, groups = stream.codes(letters).astype(np.int64), stream.groups(letters)
    longest = min(LONGEST, len(stream.rows))
    lengths = rng.integers(min(SHORTEST, longest // 2), longest + 1, STRETCHES // (4 if settings.quick else 1))
    measured = []
    for length in lengths:
        start = int(rng.integers(len(stream.rows) - length + 1))
        keys = np.ascontiguousarray(codes[stream.rows[start : start + int(length)]])
        # One size after the other in each round: what disturbs the machine disturbs all alike.
        rounds = [[_stretch(keys, max(1, round(groups / ratio))) for ratio in RATIOS] for _ in range(REPEATS)]
        measured += [(len(keys), each[0][0], min(time for _, time in each)) for each in zip(*rounds, strict=True)]
    entered, left, times = np.array(measured, np.float64).T
    costs, *_ = np.linalg.lstsq(np.stack([entered / times, left / times], axis=1), np.ones(len(times)))
    errors = (costs[0] * entered + costs[1] * left) / times - 1
    return FittedCosts(stream.name, float(costs[0]), float(costs[1]), float(np.mean(errors**2)), len(times))


def _stretch(keys: np.ndarray, buckets: int) -> tuple[int, int]:
    """Tuples that go out, and nanoseconds of processor time."""
    direct = DirectTable(buckets)
    direct.entries[:] = 0  # memory is there before the clock starts
    start = thread_time_ns()
    out = direct.take(keys)
    if len(out):
        grouped(out.view(np.uint64))
    return len(out), thread_time_ns() - start


def cost_claims(found: Sequence[FittedCosts]) -> list[Claim]:
    inputs = (
        "least squares over stretches of a stream and sizes of one table; the engine's tables, processor time, the "
        f"least of {REPEATS} rounds"
    )
    return [
        judged(
            "Sec. 8.2: cost is c1 for each tuple that comes in and c2 for each that goes out",
            "less than 1 % mean square error",
            [
                InputAnswer(one.stream, f"{one.error:.2%}, an error of {one.error**0.5:.0%}", one.error < 0.01)
                for one in found
            ],
            f"{inputs}; the mean of squared relative errors; large tables are further from the core, and an eviction "
            "that cannot be foreseen costs more than one that can; other work on the machine adds to the errors",
        ),
        judged(
            "Sec. 8.2: c2/c1 is about 15",
            "15; 50 earlier",
            [
                InputAnswer(
                    one.stream,
                    f"{one.ratio:.1f} ({one.leaving:.0f} ns against {one.entering:.0f} ns)",
                    10 <= one.ratio <= 20,
                )
                for one in found
            ],
            f"{inputs}; an insert into the exact table is all that c2 has here: what a partial group costs behind "
            "that, stored, merged and written, is not in it; holds from 10 to 20",
        ),
    ]


def cost_table(found: Sequence[FittedCosts]) -> Numbers:
    return table(
        "Sec. 8.2: costs fitted to processor time",
        ("stream", "records", "c1 (ns)", "c2 (ns)", "c2/c1", "mean square error"),
        [(o.stream, o.records, o.entering, o.leaving, o.ratio, f"{o.error:.2%}") for o in found],
    )
