"""Jobs without a plan: which rows are taken as they stand, and numbers that are made once. Spark itself runs in
`tests/integration`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.runtime.engine.jobs import BATCH, Numbered, collected, shares_workers


@dataclass
class Numbers:
    """As much of an RDD as a job uses."""

    numbers: Iterable[int]

    def map(self, run: Callable[[int], str]) -> Numbers:
        told = [run(number) for number in self.numbers]
        return SimpleNamespace(collect=lambda: told)  # type: ignore[return-value]


@dataclass
class Context:
    """As much of a SparkContext."""

    environment: dict[str, str] = field(default_factory=dict)
    made: list[int] = field(default_factory=list)

    def parallelize(self, numbers: Iterable[int], count: int) -> Numbers:
        self.made.append(count)
        return Numbers(numbers)


def frame(node: str) -> Any:
    """Rows that tell one thing when they are planned, and another as they stand."""
    rows = [SimpleNamespace(getString=lambda column: f"as it stands {column}")]
    plan = SimpleNamespace(nodeName=lambda: node, rdd=lambda: SimpleNamespace(collect=lambda: rows))
    java = SimpleNamespace(queryExecution=lambda: SimpleNamespace(logical=lambda: plan))
    return SimpleNamespace(_jdf=java, collect=lambda: [SimpleNamespace(reference="planned")])


@pytest.mark.parametrize(("node", "found"), [(BATCH, "as it stands 0"), ("MapInArrow", "planned")])
def test_only_a_batch_of_the_stream_is_taken_as_it_stands(node: str, found: str) -> None:
    assert collected(frame(node)) == [found]


def test_what_has_no_plan_in_a_jvm_of_ours_is_collected() -> None:
    given: Any = SimpleNamespace(collect=lambda: [SimpleNamespace(reference="one"), SimpleNamespace(reference="two")])
    assert collected(given) == ["one", "two"]


def test_numbers_are_made_once_for_each_count_of_tasks() -> None:
    context = Context()
    jobs = Numbered(context)  # type: ignore[arg-type]
    assert jobs.told(3, lambda number: f"task {number}") == ["task 0", "task 1", "task 2"]
    assert jobs.told(2, str) == ["0", "1"]
    assert jobs.told(3, str) == ["0", "1", "2"]
    assert context.made == [3, 2]


def test_workers_are_shared_where_rdds_have_the_environment_of_frames() -> None:
    given: Any = Context({"SPARK_SIMPLIFIED_TRACEBACK": "1"})
    assert shares_workers(given)
    other: Any = Context()
    assert not shares_workers(other)
