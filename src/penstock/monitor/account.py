"""What a run has come to, for people: its closing account, bytes, records that were malformed; times and sizes as text.

Loads rich for the table alone: most commands print none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.state.account import by_side

if TYPE_CHECKING:
    from rich.table import Table

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def time_text(microseconds: int) -> str:
    """A time for people; numbers beyond the calendar stay numbers."""
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{microseconds} us"


def bytes_text(count: int) -> str:
    """A number of bytes for people.

    >>> bytes_text(999), bytes_text(1_234_567), bytes_text(20_000_000_000)
    ('999 B', '1.2 MB', '20.0 GB')
    """
    size, unit = float(count), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{count} B"


def bytes_line(summary: dict[str, Any]) -> str:
    """What went through the state, and what is left of it."""
    state = summary["state"]
    text = {name: bytes_text(state[name]) for name in ("written", "read", "compacted", "bytes", "results")}
    compacted = f"{text['compacted']} by compactions, " if state["compactions"] else ""
    return (
        f"bytes: {text['written']} written by tasks, {compacted}{text['read']} read to close windows, "
        f"{text['bytes']} kept; results {text['results']}"
    )


def account_table(summary: dict[str, Any]) -> Table:
    """The closing account: per query and for the stream."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "closing account: input = exact + triaged + late + filtered + malformed"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    parts = ("input", "exact", "triaged", "late", "filtered", "malformed")
    for name in ("query", "windows", "rows", *parts):
        table.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
    for name, query in summary["queries"].items():
        for side, entry in by_side(name, query["accounting"]):
            table.add_row(side, f"{query['windows']:,}", f"{query['rows']:,}", *(f"{entry[part]:,}" for part in parts))
    table.add_section()
    several = "input" not in summary["accounting"]
    for name, entry in summary["accounting"].items() if several else [("", summary["accounting"])]:
        label = f"(stream {name})" if several else "(stream)"
        table.add_row(label, "", "", *(f"{entry[part]:,}" for part in parts))
    return table


def malformed_lines(summary: dict[str, Any]) -> list[str]:
    """Why records were malformed, how many, and where the first ones stand."""
    reasons, places = summary["malformed"], summary["malformed_places"]
    if "input" not in summary["accounting"]:  # by stream
        reasons = {f"{s}: {reason}": n for s, found in reasons.items() for reason, n in found.items()}
        places = {f"{s}: {reason}": at for s, found in places.items() for reason, at in found.items()}
    return [
        f"malformed: {reason}: {count:,}" + (f" (first: {'; '.join(places[reason])})" if places.get(reason) else "")
        for reason, count in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))  # whatever task met which first
    ]
