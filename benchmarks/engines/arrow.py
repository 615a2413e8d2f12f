"""Reference answers by pyarrow's own group_by: slow and plain, nothing shared with any contender."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure.digest import digest_batches
from benchmarks.measure.job import Answer, EngineJob, elapsed, serve


def run(job: EngineJob) -> Answer:
    pa.set_cpu_count(job.threads)
    table = pq.read_table(job.file, columns=[job.time, job.value, *job.columns])
    micros = table[job.time].cast(pa.int64())
    table = table.append_column("window_start", pc.multiply(pc.divide(micros, job.window), job.window))
    for key in job.keys:
        if key.length:
            whole = table[key.column].cast(pa.int64())
            table = table.append_column(key.name, pc.divide(whole, 2**key.below))
    digests = []
    for keys in map(job.names, range(len(job.queries))):
        groups = table.group_by([*keys, "window_start"]).aggregate([([], "count_all"), (job.value, "sum")])
        names = [*keys, "window_start", "count_all", f"{job.value}_sum"]
        digests.append(str(digest_batches(groups.to_batches(), names)))
    seconds = elapsed(job)
    return Answer(pa.__version__, seconds, table.num_rows, seconds, tuple(digests))


if __name__ == "__main__":
    serve(run)
