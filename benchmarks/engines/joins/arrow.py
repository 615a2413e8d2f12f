"""Reference answers of `aggjoin` by pyarrow's group_by and join, window by window: slow and plain, nothing shared with
any contender. Sides are grouped before they are joined: all pairs of records would take hours."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure.digest import Digest, digest
from benchmarks.measure.job import JOINED, Answer, JoinJob, elapsed, serve_joins


def run(job: JoinJob) -> Answer:
    pa.set_cpu_count(job.threads)
    left, right = (read(file) for file in (job.left, job.right))
    found, windows = Digest(), 0
    times = [pc.min_max(side["ts"]) for side in (left, right)]
    least, most = (choose(each[which].as_py() for each in times) for choose, which in ((min, "min"), (max, "max")))
    for start in starts(job, least, most):
        window = joined(*(_held(side, start, job.range) for side in (left, right)))
        if window.num_rows:
            windows += 1
            columns = [*(window[name] for name in JOINED[:2]), pa.array([start] * window.num_rows)]
            columns += [window[name] for name in JOINED[3:]]
            found += digest([c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns])
    seconds = elapsed(job)
    rows = left.num_rows + right.num_rows
    return Answer(pa.__version__, seconds, rows, seconds, (str(found),), extra={"windows": windows})


def read(file: str) -> pa.Table:
    """A stream with its time in microseconds."""
    table = pq.read_table(file)
    return table.set_column(0, "ts", table["ts"].cast(pa.int64()))


def starts(job: JoinJob, least: int, most: int) -> range:
    """Where windows begin that may hold something between these times: at multiples of the slide."""
    first = (least - job.range) // job.slide * job.slide + job.slide
    return range(first, most // job.slide * job.slide + job.slide, job.slide)


def _held(side: pa.Table, start: int, length: int) -> pa.Table:
    times = side["ts"]
    return side.filter(pc.and_(pc.greater_equal(times, start), pc.less(times, start + length)))


def joined(left: pa.Table, right: pa.Table) -> pa.Table:
    """The results of one window."""
    a = left.group_by(["k", "g"]).aggregate([([], "count_all"), ("x", "sum")]).rename_columns(["k", "g", "na", "x"])
    b = right.group_by(["k", "h"]).aggregate([([], "count_all"), ("y", "max")]).rename_columns(["k", "h", "nb", "y"])
    pairs = a.join(b, "k", join_type="inner")
    columns = {
        "g": pairs["g"], "h": pairs["h"], "n": pc.multiply(pairs["na"], pairs["nb"]),
        "total": pc.multiply(pairs["x"], pairs["nb"]), "most": pairs["y"],
    }  # fmt: skip
    groups = pa.table(columns).group_by(["g", "h"]).aggregate([("n", "sum"), ("total", "sum"), ("most", "max")])
    return groups.rename_columns(["g", "h", "n", "total", "most"])


if __name__ == "__main__":
    serve_joins(run)
