"""Aggregation over a join, evaluated from scratch: what the operator of `experiments.join` must give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

Record = tuple[int, int, int]  # G, J, A
Asked = tuple[str, int]  # a function, and the number of its stream


def evaluate(windows: Sequence[Sequence[Record]], asked: Iterable[Asked]) -> dict[tuple[int, ...], tuple[Any, ...]]:
    """Functions by group, over all combinations of records with one key."""
    found: dict[tuple[int, ...], list[tuple[Record, ...]]] = defaultdict(list)
    keys = set.intersection(*({key for _, key, _ in window} for window in windows))
    for key in keys:
        for records in product(*([record for record in window if record[1] == key] for window in windows)):
            found[tuple(group for group, _, _ in records)].append(records)
    asked = list(asked)
    return {group: tuple(_value(records, *one) for one in asked) for group, records in found.items()}


def _value(joined: list[tuple[Record, ...]], name: str, stream: int) -> Any:
    values = [records[stream][2] for records in joined]
    if name == "count":
        return len(values)
    if name == "avg":
        return sum(values) / len(values)
    return {"sum": sum, "min": min, "max": max}[name](values)
