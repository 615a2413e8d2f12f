"""penstock against its peers in `aggjoin`, and what is aimed at.

| figure | how many times as fast as, or as much | by |
| --- | --- | --- |
| `spark`, `flink` | Spark's join of streams, Flink's window join | seconds a record, warm |
| `duckdb` | DuckDB, in its best form of that work | milliseconds a window: of closing, and of the query |
| `spark_state` | bytes that Spark keeps at most | bytes that penstock keeps at most |
| `tasks` | processor time of tasks | that of decoding and one probe a record |

Only answers that are the same count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.data.joins import SLIDING, TUMBLING

Line = dict[str, Any]
PEERS = {"spark": "spark_stream_join", "flink": "flink_window_join"}
DUCKDB = ("duckdb", "duckdb_late")
TASKS = "tasks"


@dataclass(frozen=True)
class JoinGoal:
    """A figure that should be at least `aim`, or of `tasks` at most; of all cases and windows, or of one."""

    figure: str
    aim: float
    what: str
    windows: str = ""
    case: str = ""

    def of(self, line: Line) -> bool:
        return self.windows in ("", line["windows"]) and self.case in ("", line["case"])

    def met(self, reached: float) -> bool:
        return reached <= self.aim if self.figure == TASKS else reached >= self.aim


GOALS = (
    JoinGoal("spark", 100, "x Spark's join", SLIDING.name, "few"),
    JoinGoal("spark", 20, "x Spark's join", SLIDING.name, "once"),
    JoinGoal("duckdb", 3, "x DuckDB's best form", SLIDING.name),
    JoinGoal("duckdb", 1, "x DuckDB's best form", TUMBLING.name),
    JoinGoal(TASKS, 1.5, "x decode + probe"),
)


def against(lines: Sequence[Line], ours: Sequence[str]) -> list[Line]:
    """For each case, kind of window and engine of ours, the figures of this module; None where there is none."""
    found = []
    for work in dict.fromkeys(line["work"] for line in lines):
        same = {line["engine"]: line for line in lines if line["work"] == work and line["same_answer"]}
        best = min(filter(None, (same[name]["ms_a_window"] for name in DUCKDB if name in same)), default=None)
        for own in (same[name] for name in ours if name in same):
            spark = same.get(PEERS["spark"], {})
            figures = {name: _times(_per_record(same.get(peer)), _per_record(own)) for name, peer in PEERS.items()}
            figures |= {"duckdb": _times(best, own["ms_a_window"]), TASKS: own.get("tasks_ratio")}
            figures |= {"spark_state": _times(spark.get("state_bytes"), own["state_bytes"])}
            found.append({"case": own["case"], "windows": own["windows"], "engine": own["engine"], **figures})
    return found


def goals(found: Sequence[Line]) -> list[Line]:
    """Each goal, for each case and kind of window that was measured: what every engine of ours reached, and which of
    them meet it."""
    return [line for goal in GOALS for line in _lines(goal, [line for line in found if goal.of(line)])]


def _lines(goal: JoinGoal, found: Sequence[Line]) -> Iterator[Line]:
    for case, windows in dict.fromkeys((line["case"], line["windows"]) for line in found):
        mine = [line for line in found if (line["case"], line["windows"]) == (case, windows)]
        reached = {line["engine"]: line[goal.figure] for line in mine if line[goal.figure] is not None}
        met = [engine for engine, value in reached.items() if goal.met(value)]
        told = {"figure": goal.figure, "goal": goal.aim, "what": goal.what}
        yield {**told, "case": case, "windows": windows, "reached": reached, "met": met}


def _per_record(line: Line | None) -> float | None:
    return line["seconds"] / line["rows"] if line and line["seconds"] else None


def _times(theirs: float | None, ours: float | None) -> float | None:
    return round(theirs / ours, 3) if theirs and ours else None
