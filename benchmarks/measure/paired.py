"""Engines in turn, again and again, by processor time: for small differences on machines that others work on as well.

    round 1: a b c    round 2: c b a    round 3: a b c    …    ratio a / b of each round ──► mean, 95 % interval

An engine's processor time is that of all its processes. Of penstock it is that of the whole run: imports, planning,
first micro-batch and all; Spark is started before it. A second ratio is of the micro-batches after the first: until
that has ended, workers load what they need, sooner or later as the driver plans or not. Of peers it is that of their
second execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt
from statistics import fmean, median, stdev
from typing import Any

from benchmarks.measure.job import Answer

# Two-sided 95 % of Student's t, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
STUDENT |= {10: 2.228, 11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101}
MANY = 2.093  # and for more


ALL, BATCHES = "all", "batches"


def in_turn(
    runs: Sequence[tuple[str, Callable[[], Answer | str]]], times: int, tell: Callable[[str], None]
) -> dict[str, list[Answer] | str]:
    """The answers of each engine, of all rounds; a sentence of one that has failed, which does not run again."""
    found: dict[str, list[Answer] | str] = {name: [] for name, _ in runs}
    for number in range(times):
        for name, run in runs if number % 2 == 0 else runs[::-1]:
            known = found[name]
            if isinstance(known, str):
                continue
            tell(f"round {number + 1} of {times}: {name}")
            answer = run()
            if isinstance(answer, str):
                found[name] = answer
            else:
                known.append(answer)
    return found


def spent_by(answer: Answer, what: str = ALL) -> float:
    """Processor seconds: of the whole run, where it tells them, or of its batches."""
    return float(answer.extra.get(f"cpu_seconds_{what}", answer.cpu_seconds or 0.0))


def lines(found: dict[str, list[Answer] | str]) -> list[dict[str, Any]]:
    """A line for each engine. `ratio` is the processor time of the first engine to this one's: below 1 the first one
    needs less; `low` and `high` are its 95 % interval. `batches` has the same of micro-batches alone."""
    first = next((answers for answers in found.values() if not isinstance(answers, str)), [])
    return [_line(name, answers, first) for name, answers in found.items()]


def _line(name: str, answers: list[Answer] | str, first: list[Answer]) -> dict[str, Any]:
    if isinstance(answers, str) or not answers:
        note = answers if isinstance(answers, str) else ""
        return {"engine": name, "version": "", "seconds": None, "ratio": None, "ratio_to_penstock": None, "note": note}
    used = [spent_by(answer) for answer in answers]
    line = {
        "engine": name,
        "version": answers[0].version,
        "seconds": round(median(answer.seconds for answer in answers), 4),
        "rows": answers[0].rows,
        "cpu_seconds": [round(each, 3) for each in used],
        "cpu_seconds_median": round(median(used), 3),
        "ratio": None,
        "ratio_to_penstock": None,
        "note": answers[0].note,
    }
    if len(first) == len(answers):
        every = _ratio(first, answers, ALL)
        line |= every
        line["batches"] = _ratio(first, answers, BATCHES)
        line["ratio_to_penstock"] = round(1 / every["ratio"], 4) if every["ratio"] else None
    return line


def _ratio(first: list[Answer], answers: list[Answer], what: str) -> dict[str, float | None]:
    used = [(spent_by(one, what), spent_by(other, what)) for one, other in zip(first, answers, strict=True)]
    if not all(one > 0 and other > 0 for one, other in used):
        return {"ratio": None, "low": None, "high": None}
    ratios = [one / other for one, other in used]
    low, high = interval(ratios)
    return {"ratio": round(exp(fmean(map(log, ratios))), 4), "low": round(low, 4), "high": round(high, 4)}


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """95 % of the mean ratio, from the logarithms of paired ones."""
    logs = [log(ratio) for ratio in ratios]
    if len(logs) < 2:
        return 0.0, float("inf")
    spread = STUDENT.get(len(logs) - 1, MANY) * stdev(logs) / sqrt(len(logs))
    return exp(fmean(logs) - spread), exp(fmean(logs) + spread)
