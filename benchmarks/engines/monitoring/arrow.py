"""Reference answers: every question worked out with numpy and pyarrow's group_by, none of its SQL read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.engines.monitoring.questions import ADDRESSES, COLUMNS, Question, asked
from benchmarks.measure.digest import digest_batches
from benchmarks.measure.job import Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key

Numbers = NDArray[np.int64]
Records = dict[str, Numbers]


def run(job: EngineJob) -> Answer:
    pa.set_cpu_count(job.threads)
    table = pq.read_table(job.file, columns=list(COLUMNS))
    records = {name: table[name].cast(pa.int64()).to_numpy() for name in COLUMNS}
    digests = tuple(str(digest_batches(answer(one, records).to_batches(), one.columns)) for one in asked(job))
    seconds = elapsed(job)
    return Answer(pa.__version__, seconds, table.num_rows, seconds, digests)


def answer(question: Question, records: Records) -> pa.Table:
    chosen = _chosen(question.name, records)
    records = {name: values[chosen] for name, values in records.items()}
    rows = np.arange(len(records["ts"]))
    start = records["ts"] // question.pane * question.pane
    starts = np.concatenate([start - number * question.pane for number in range(question.panes)])
    rows = np.tile(rows, question.panes)
    columns = {name: _key(part, records)[rows] for part, name in question.parts()}
    columns |= {"window_start": starts, "bytes": records["bytes"][rows], "ts": records["ts"][rows]}
    columns |= {"is_open": (records["flags"] % 64 == 2)[rows], "is_closed": (records["flags"] % 2 == 1)[rows]}
    by = [*question.names, "window_start"]
    aggregates = [([], "count_all"), ("bytes", "sum"), ("ts", "min"), ("ts", "max"), ("is_open", "sum")]
    groups = pa.table(columns).group_by(by).aggregate([*aggregates, ("is_closed", "sum")])
    names = {"count_all": "packets", "bytes_sum": "total", "ts_min": "first", "ts_max": "last"}
    names |= {"is_open_sum": "opened", "is_closed_sum": "closed"}
    groups = groups.rename_columns([names.get(name, name) for name in groups.column_names])
    if question.having:
        groups = groups.filter(pc.greater_equal(groups["packets"], question.having))
    return _first(question, groups) if question.top else groups


def _chosen(name: str, records: Records) -> NDArray[np.bool_]:
    proto = records["proto"]
    found = {"flags": proto == 6, "troubles": (records["ttl"] <= 40) | (proto == 1)}
    found["scanned"] = (proto == 6) & (records["flags"] % 64 == 2)
    return np.asarray(found.get(name, np.ones(len(proto), bool)))


def _key(part: Key | str, records: Records) -> Numbers:
    if isinstance(part, Key):
        return records[part.column] >> part.below if part.column in ADDRESSES else records[part.column]
    if part.startswith("least"):
        return np.minimum(records["sport"], records["dport"])
    return records["bytes"] // 64 * 64


def _first(question: Question, groups: pa.Table) -> pa.Table:
    """The first rows of each window."""
    by = [("window_start", "ascending"), ("total", "descending"), (question.names[0], "ascending")]
    ordered = groups.sort_by(by)
    windows = ordered["window_start"].to_numpy()
    place = np.arange(len(windows)) - np.searchsorted(windows, windows)
    return ordered.filter(pa.array(place < question.top))


if __name__ == "__main__":
    serve(run)
