"""The engines of the benchmark `aggjoin`, and how much each is given to do."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.comparisons.contenders import PARTS, TEXTS
from benchmarks.data.joins import JoinCase, Movement

PATIENCE = 5


@dataclass(frozen=True)
class JoinContender:
    """An engine of the benchmark. `pairs` and `copies` limit the pairs of records that it goes through, and the records
    that it keeps, one for each window that they are in: it reads a prefix. The shortest one may have `PATIENCE` times
    as many; beyond that it would take more than five minutes."""

    name: str
    module: str
    package: str = ""
    mode: str = ""
    pairs: int = 0
    copies: int = 0
    form: str = ""  # what it reads, if not Parquet files: of `benchmarks.comparisons.contenders`
    note: str = ""

    @property
    def ours(self) -> bool:
        return self.module == "joins.penstock"

    def slides(self, case: JoinCase, movement: Movement) -> int:
        """How many slides of the stream it reads, at least two windows that tumble or one that slides; 0: none."""
        least = shortest(movement)
        for count in range(movement.slides, least - 1, -1):
            if self.takes(case, movement, count):
                return count
        return least if self.takes(case, movement, least, PATIENCE) else 0

    def left_out(self, case: JoinCase, movement: Movement) -> str:
        """Why it reads nothing."""
        least = shortest(movement)
        pairs, kept = movement.pairs(case, least), copies_kept(case, movement, least)
        many = self.pairs and pairs > PATIENCE * self.pairs
        what = f"{pairs:,} pairs" if many else f"{kept:,} records in state"
        return f"left out: {what} even of the shortest stream, more than five minutes"

    def takes(self, case: JoinCase, movement: Movement, slides: int, times: int = 1) -> bool:
        """Whether so many slides are within the limits, or so many times them."""
        few = not self.pairs or movement.pairs(case, slides) <= times * self.pairs
        return few and (not self.copies or copies_kept(case, movement, slides) <= times * self.copies)


def shortest(movement: Movement) -> int:
    """Slides of two windows that tumble, or of one that slides."""
    return max(2, movement.steps)


def copies_kept(case: JoinCase, movement: Movement, slides: int) -> int:
    """Records of so many slides, both streams, one for each window that they are in."""
    return 2 * movement.rows(case, slides) * movement.steps


CONTENDERS = (
    JoinContender(
        "penstock",
        "joins.penstock",
        note="on Spark, after the first micro-batch that closes windows; the plan is its own choice (--joins auto)",
    ),
    JoinContender("penstock_process", "joins.penstock", mode="process", note="--master process, likewise"),
    JoinContender(
        "penstock_early",
        "joins.penstock",
        mode="process early",
        note="--master process --joins early: both streams are aggregated before they are stored",
    ),
    JoinContender(
        "penstock_late",
        "joins.penstock",
        mode="process late",
        note="--master process --joins late: records are stored as they come, and grouped when windows close",
    ),
    JoinContender("duckdb", "joins.duckdb", "duckdb", note="in memory, window by window"),
    JoinContender(
        "duckdb_late",
        "joins.duckdb",
        "duckdb",
        "late",
        pairs=1_000_000_000,
        note="the same without partial_aggregate_pushdown",
    ),
    JoinContender(
        "spark_stream_join",
        "joins.spark",
        pairs=60_000_000,
        copies=4_000_000,
        form=PARTS,
        note="stream-stream join by (window, key), then groupBy",
    ),
    JoinContender(
        "flink_window_join",
        "joins.flink",
        "pyflink",
        pairs=60_000_000,
        copies=4_000_000,
        form=TEXTS,
        note="window TVFs joined by window and key, then grouped by window; without the start of the job",
    ),
)
