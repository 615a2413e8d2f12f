"""What other engines write, and what to write here: for messages alone.

| engine | a window of a minute |
| --- | --- |
| Spark | `GROUP BY window(ts, '1 minute')` |
| Flink | `GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)`, `FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), …))` |
| ksqlDB | `FROM s WINDOW TUMBLING (SIZE 1 MINUTE)` |
| TimescaleDB, DuckDB, Postgres | `GROUP BY time_bucket('1 minute', ts)`, `date_bin` |
| penstock | `FROM s [RANGE '1 minute']` |
"""

from __future__ import annotations

import re

from penstock.lang.durations import format_duration, parse_duration

# Whether the slide comes before the length, as in Flink's HOP; not in ksqlDB's HOPPING.
WINDOWS = {
    "window": False, "tumble": False, "tumbling": False, "hop": True, "hopping": False, "cumulate": True,
    "session": False, "session_window": False, "time_bucket": False, "date_bin": False, "time_slice": False,
}  # fmt: skip
EDGES = frozenset(
    f"{kind}_{edge}" for kind in ("tumble", "hop", "session", "window") for edge in ("start", "end", "rowtime", "time")
)
_DURATION = re.compile(r"(?i)(?:interval\s+)?'\s*\d[\w\s.]*'(?:\s*(?:micro|milli)?(?:second|minute|hour|day|week)s?)?")
_BARE = re.compile(r"(?i)\b\d+\s+(?:micro|milli)?(?:second|minute|hour|day|week)s?")


def window_elsewhere(name: str, written: str) -> tuple[str, str] | None:
    """Fact and hint, if `name` is a window of another engine; `written` is what stands after it.

    >>> window_elsewhere("HOP", "ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE")[1]
    "write the window after the stream: FROM stream [RANGE '5 minutes' SLIDE '1 minute']"
    """
    word = name.lower()
    if word in EDGES:
        return f"there is no function {word}", "results have the columns window_start and window_end by themselves"
    if word not in WINDOWS:
        return None
    if word.startswith("session"):
        return "session windows are not executable yet", f"a window has a fixed length: {_clause(written, False)}"
    return (
        f"'{name}' is not how windows are written here",
        f"write the window after the stream: {_clause(written, WINDOWS[word])}",
    )


def _clause(written: str, slide_first: bool) -> str:
    found = []
    for text in _DURATION.findall(written) or _BARE.findall(written):
        try:
            found.append(format_duration(parse_duration(re.sub(r"(?i)interval|'", " ", text).strip())))
        except ValueError:
            continue
    length, *slide = (found[1::-1] if slide_first and len(found) > 1 else found)[:2] or ["1 minute"]
    steps = "".join(f" SLIDE '{one}'" for one in slide)
    return f"FROM stream [RANGE '{length}'{steps}]"
