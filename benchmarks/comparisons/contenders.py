"""The engines of the benchmark `multiquery`, and how much each is given to do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.measure.job import DISCARD, PARQUET

SINKS = {PARQUET: "results to Parquet", DISCARD: "results discarded"}
PARTS, TEXTS = "parts", "texts"  # forms of a file, see `benchmarks.data.files`
STREAMS = ("flows", "zeek", "packets", "prefixes")  # of `benchmarks.data.files`
LOG, MONITORING = "zeek", "monitoring"
REPEATING = ("packets", "prefixes")  # where one aggregate by the finest keys has fewer rows than there are records
QUICK_SHARE = 8  # of what slow engines are given, in a quick run


@dataclass(frozen=True)
class Contender:
    """An engine of the benchmark. `most` limits its queries times records: slow engines read a prefix. They also
    drop no results of the log: a whole run should not take hours."""

    name: str
    module: str
    package: str = ""  # what the peers' environment must have; empty for engines of our own environment
    mode: str = ""
    dozen: str = ""  # the module that answers the questions of `monitoring`; empty: none does
    most: int = 0
    form: str = ""  # what it reads, if not the Parquet file
    part_rows: int = 0  # of a part file: a micro-batch
    sinks: tuple[str, ...] = (PARQUET, DISCARD)
    streams: tuple[str, ...] = STREAMS
    queries: int = 78  # at most
    note: str = ""

    def takes(self, stream: str, sink: str, queries: int) -> bool:
        """Whether it runs this number of queries on this stream with this sink."""
        dropping = sink == PARQUET or not self.most or stream != LOG
        reads = stream in self.streams if stream != MONITORING else bool(self.dozen)
        return reads and sink in self.sinks and queries <= self.queries and dropping

    def program(self, stream: str) -> str:
        """The module below `benchmarks.engines` that answers the queries of a stream."""
        return self.dozen if stream == MONITORING else self.module

    def rows(self, queries: int, every: int) -> int:
        """Of `every` records, how many it reads."""
        return min(every, max(1, self.most // queries)) if self.most else every

    def shortened(self) -> Contender:
        """For a quick run."""
        return replace(self, most=self.most // QUICK_SHARE, part_rows=self.part_rows // QUICK_SHARE)


CACHED = "batch, separate queries on a cached table, as many at a time as there are cores; on a prefix"
BY_HAND = "batch, in process, one aggregate by the finest keys rolled up by hand"
PROCESS, PROCESS_UNSHARED = "penstock_process", "penstock_process_unshared"
CONTENDERS = (
    Contender("penstock", "penstock", mode="auto", dozen="penstock", note="without the first micro-batch"),
    Contender("penstock_unshared", "penstock", mode="none", dozen="penstock", note="the same with --plan none"),
    Contender(
        PROCESS,
        "penstock",
        mode="auto process",
        dozen="penstock",
        note="--master process; without the first micro-batch",
    ),
    Contender(PROCESS_UNSHARED, "penstock", mode="none process", dozen="penstock", note="the same with --plan none"),
    Contender(
        "spark_streaming",
        "spark_streaming",
        most=78 * 300_000,
        form=PARTS,
        part_rows=150_000,
        note="a streaming query for each, tuned: a shuffle task a core; on a prefix",
    ),
    Contender(
        "spark_streaming_default",
        "spark_streaming",
        mode="default",
        most=78 * 400_000,
        form=PARTS,
        part_rows=200_000,
        sinks=(PARQUET,),
        streams=("flows",),
        queries=20,  # more of 200 tasks each take minutes, whatever the data
        note="as shipped: 200 shuffle tasks; on a prefix",
    ),
    Contender("spark_grouping_sets", "spark_grouping_sets", most=78 * 150_000, note="batch; on a prefix"),
    Contender(
        "spark_base_aggregate",
        "spark_base_aggregate",
        most=78 * 150_000,
        note="batch, one aggregate by all attributes rolled up by hand; on a prefix",
    ),
    Contender(
        "flink", "flink", "pyflink", most=78 * 150_000, form=TEXTS, note="one statement set, to text; on a prefix"
    ),
    Contender("spark_batch", "", dozen="monitoring.spark", most=12 * 1_000_000, streams=(), note=CACHED),
    Contender("duckdb", "duckdb", "duckdb", dozen="monitoring.duckdb", note="batch, in process, separate queries"),
    Contender(
        "duckdb_grouping_sets", "duckdb", "duckdb", "grouping_sets", most=78 * 2_000_000, note="batch, in process"
    ),
    Contender("duckdb_rolled_up", "duckdb", "duckdb", "rolled_up", streams=REPEATING, note=BY_HAND),
    Contender("polars", "polars", "polars", dozen="monitoring.polars", note="batch, in process, collect_all"),
    Contender("polars_rolled_up", "polars", "polars", "rolled_up", streams=REPEATING, note=BY_HAND),
    Contender(
        "clickhouse",
        "clickhouse",
        "chdb",
        dozen="monitoring.clickhouse",
        note="batch, in process (chdb), separate queries",
    ),
    Contender("clickhouse_rolled_up", "clickhouse", "chdb", "rolled_up", streams=REPEATING, note=BY_HAND),
)
