"""Lines for people: bytes in units, and what went through the state."""

from __future__ import annotations

from typing import Any

from penstock.monitor.account import bytes_line, bytes_text


def test_bytes_for_people() -> None:
    found = [bytes_text(count) for count in (0, 999, 1000, 1_234_567, 5 * 10**9, 10**18)]
    assert found == ["0 B", "999 B", "1.0 kB", "1.2 MB", "5.0 GB", "1000.0 PB"]


def test_what_went_through_the_state() -> None:
    state: dict[str, Any] = {
        "written": 5000,
        "read": 7000,
        "compacted": 0,
        "compactions": 0,
        "bytes": 3,
        "results": 10**6,
    }
    assert bytes_line({"state": state}) == (
        "bytes: 5.0 kB written by tasks, 7.0 kB read to close windows, 3 B kept; results 1.0 MB"
    )
    state |= {"compacted": 4000, "compactions": 2}
    assert "written by tasks, 4.0 kB by compactions, 7.0 kB read" in bytes_line({"state": state})
