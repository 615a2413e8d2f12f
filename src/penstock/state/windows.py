"""The account of closed windows: per query a ring of the newest ones (`state.rings`).

    windows/QUERY    window │ start │ end │ rows │ exact │ triaged
    delays/QUERY     window │ delay │ promise      microseconds

The manifest says how many windows a query has closed (`results`); the account of a batch's windows is written before
its manifest. How long after the end of a window its result came is known when it is published: delays are written then,
of live streams alone, and a run that is killed before has none of that batch.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.state.rings import CAPACITY, Ring

ACCOUNTS = Ring("windows", ("window", "start", "end", "rows", "exact", "triaged"), "windows.write")
DELAYS = Ring("delays", ("window", "delay", "promise"), "delays.write")
UNPROMISED = -1  # where a query promises nothing

Array = np.ndarray


def fresh(windows: Array) -> Array:
    """Accounts of these windows (ascending, at most CAPACITY), with nothing counted yet."""
    records = ACCOUNTS.fresh(len(windows))
    records["window"] = windows
    return records


def write_windows(checkpoint: Path, query: str, closed: int, records: Array) -> None:
    """Keep the accounts of the newest of `closed` windows, in order."""
    ACCOUNTS.write(checkpoint, query, closed, records)


def read_windows(checkpoint: Path, query: str, closed: int, most: int = CAPACITY) -> Array:
    """Accounts of the newest of `closed` windows, oldest first; those that are damaged or overwritten are left out."""
    return ACCOUNTS.read(checkpoint, query, closed, most)


def write_delays(checkpoint: Path, query: str, closed: int, windows: Array, delays: Array, promise: int | None) -> None:
    """Keep how late the results of the newest of `closed` windows came."""
    records = DELAYS.fresh(len(windows))
    records["window"], records["delay"] = windows, delays
    records["promise"] = UNPROMISED if promise is None else promise
    DELAYS.write(checkpoint, query, closed, records)


def read_delays(checkpoint: Path, query: str, closed: int, most: int = CAPACITY) -> Array:
    return DELAYS.read(checkpoint, query, closed, most)


def listed(checkpoint: Path, query: str, closed: int, most: int = CAPACITY) -> list[dict[str, int | bool]]:
    """The newest windows as JSON and users have them: times are microseconds. Of a live stream with their `delay`, and
    whether that broke the promise (`overdue`)."""
    records = read_windows(checkpoint, query, closed, most)
    shown: list[dict[str, int | bool]] = [
        dict(zip(ACCOUNTS.columns, values, strict=True)) for values in records[list(ACCOUNTS.columns)].tolist()
    ]
    late = read_delays(checkpoint, query, closed, most)
    told = dict(
        zip(late["window"].tolist(), zip(late["delay"].tolist(), late["promise"].tolist(), strict=True), strict=True)
    )
    for one in shown:
        if one["window"] in told:
            delay, promise = told[one["window"]]
            one |= {"delay": delay} if promise == UNPROMISED else {"delay": delay, "overdue": delay > promise}
    return shown


def overdue(checkpoint: Path, query: str, closed: int) -> int | None:
    """How many of the windows whose delays are kept came later than promised; None: nothing was promised of any."""
    kept = read_delays(checkpoint, query, closed)
    promised = kept[kept["promise"] != UNPROMISED]
    return int((promised["delay"] > promised["promise"]).sum()) if len(promised) else None


def accounted(checkpoint: Path) -> set[str]:
    """Queries, dropped ones too, of which there are records."""
    folder = checkpoint / ACCOUNTS.folder
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
