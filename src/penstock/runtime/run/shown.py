"""A run for notebooks: how far it is, and its account, as tables."""

from __future__ import annotations

from typing import Any

from penstock.markup import html_lines, html_pairs, html_table
from penstock.state.account import by_side

PARTS = ("input", "exact", "triaged", "late", "filtered", "malformed")


class Summary(dict[str, Any]):
    """What `run --json` prints; a notebook shows the account in it."""

    def _repr_html_(self) -> str:
        return account_html(self)


def account_html(summary: dict[str, Any]) -> str:
    """The account: per query and for the stream."""
    rows: list[list[object]] = [
        [side, query["windows"], query["rows"], *(entry[part] for part in PARTS)]
        for name, query in summary["queries"].items()
        for side, entry in by_side(name, query["accounting"])
    ]
    several = "input" not in summary["accounting"]
    for name, entry in summary["accounting"].items() if several else [("", summary["accounting"])]:
        label = f"(stream {name})" if several else "(stream)"
        rows.append([label, None, None, *(entry[part] for part in PARTS)])
    title = "account: input = exact + triaged + late + filtered + malformed"
    malformed = summary["malformed"].items()
    reasons = [(f"{s}: {r}", n) for s, found in malformed for r, n in found.items()] if several else malformed
    lines = [f"malformed: {reason}: {count:,}" for reason, count in reasons]
    return html_table(title, ("query", "windows", "rows", *PARTS), rows) + html_lines(lines)


def run_html(state: str, progress: dict[str, Any], summary: dict[str, Any]) -> str:
    """How far a run is, then its account."""
    known = progress["rows"], progress["total"]
    shown = [
        ("state", state),
        ("checkpoint", summary["checkpoint"]),
        ("batches", progress["batch"] + 1),
        ("records", known[0]),
        ("of", known[1]),
        ("windows closed", progress["windows"]),
        ("plan", summary["plan"]["configuration"]),
        ("seconds", summary["seconds"]["total"]),
    ]
    return html_pairs("run", shown) + account_html(summary)
