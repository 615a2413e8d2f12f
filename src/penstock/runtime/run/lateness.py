"""What a summary says of live streams: how late results came, against what was promised, and what waits.

Delays are those of the newest windows that rings keep (`state.windows`), in seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from penstock.logical.query import Query
from penstock.runtime.batch.report import BatchReport
from penstock.state.data import to_data
from penstock.state.manifest import Manifest
from penstock.state.protocol import Results
from penstock.state.rings import CAPACITY
from penstock.state.windows import read_delays

MICROSECONDS = 1_000_000


def shown_delays(checkpoint: Path, manifest: Manifest, query: Query) -> dict[str, Any] | None:
    """Of a query on a live stream; None: of any other."""
    closed = manifest.results.get(query.name, Results()).windows
    found = read_delays(checkpoint, query.name, closed, CAPACITY)["delay"] / MICROSECONDS
    if not len(found):
        return None
    promise = None if query.promise is None else query.promise / MICROSECONDS
    middle, most = np.quantile(found, [0.5, 0.99], method="inverted_cdf")
    shown = {"windows": len(found), "median": float(middle), "p99": float(most), "greatest": float(found.max())}
    if promise is None:
        return shown
    overdue = int((found > promise).sum())
    return {"promise": promise, **shown, "overdue": overdue, "kept": 1 - overdue / len(found)}


def shown_arrivals(report: BatchReport | None) -> dict[str, dict[str, float]]:
    """What waits in live streams after the newest batch."""
    return {} if report is None else {name: to_data(one) for name, one in report.arrivals.items()}
