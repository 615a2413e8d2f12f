"""Jobs that Spark runs without planning a query for them.

A DataFrame goes through Spark's analyser, optimiser, code generator and history of queries each time it is collected.
For a job whose tasks do all their work in Python that takes the JVM longer than the job itself, and each micro-batch
has two. What a batch has read is computed by the streaming query's own plan; a merge needs no plan at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.runtime.spark.session import OF_FRAMES

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame

BATCH = "LogicalRDD"  # what Spark hands over to foreachBatch: rows that its own plan computes


def shares_workers(context: SparkContext) -> bool:
    """Whether functions of RDDs run in the workers that functions of DataFrames have."""
    name, value = OF_FRAMES
    return bool(context.environment.get(name) == value)


def collected(given: DataFrame) -> list[str]:
    """What tasks have told, a row each. A batch of the streaming query is not planned anew."""
    frame: Any = getattr(given, "_jdf", None)
    plan = None if frame is None else frame.queryExecution().logical()
    if plan is None or plan.nodeName() != BATCH:
        return [row.reference for row in given.collect()]
    return [row.getString(0) for row in plan.rdd().collect()]


class Numbered:
    """Jobs of numbered tasks. Where a task runs is one thing for all jobs of that many tasks: it is made once."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._numbers: dict[int, RDD[int]] = {}

    def told(self, count: int, run: Callable[[int], str]) -> list[str]:
        """What the tasks 0 … count - 1 tell, in order."""
        numbers = self._numbers.get(count)
        if numbers is None:
            numbers = self._numbers[count] = self._context.parallelize(range(count), count)
        return numbers.map(run).collect()
