"""What a run needs of the engine that drives it: an executor, a feed of batches, and a loop that calls the driver.

| | `SPARK` (`engine.spark`) | `PROCESS` (`engine.process`) |
| --- | --- | --- |
| tasks run in | Python workers of Spark's | processes that `engine.zygote` forks, or this one |
| batches are decided by | Spark's streaming query | `engine.batches` |
| decisions are logged in | Spark's offsets and commits | `decisions/N` of the checkpoint |

All the rest of a run is the same with both. A checkpoint belongs to one of them: its log of decisions is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.batch.executor import Executor
from penstock.runtime.batch.feed import Feed
from penstock.runtime.batch.job import Job
from penstock.runtime.engine.inputs import Inputs
from penstock.runtime.engine.places import Places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK, PROCESS = "spark", "process"


class Loop(Protocol):
    """The batches of a run, one after the other, beside the thread that started it."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all batches are done; False if `timeout` seconds passed first. Raises what went wrong."""
        ...

    def waiting(self) -> bool:
        """Whether all that has arrived is done, and the loop looks for more."""
        ...

    def stop(self) -> None:
        """End between two batches."""
        ...


class Engine(Protocol):
    """One for each run; `name` stands in the identity of its checkpoint."""

    @property
    def name(self) -> str: ...

    @property
    def session(self) -> SparkSession | None:
        """Spark's, if that is the engine: what DataFrames are made with."""
        ...

    @property
    def version(self) -> str | None:
        """Of Spark."""
        ...

    @property
    def executor(self) -> Executor[Any]: ...

    @property
    def spread(self) -> bool:
        """Whether tasks may run on other machines."""
        ...

    def probe(self, places: Places) -> None:
        """See that tasks can run, and reach these places, wherever they run; a ConfigError where they cannot."""
        ...

    def processes(self) -> list[int]:
        """Those that may still write after this one was killed; the next run on the checkpoint waits for them."""
        ...

    def feed(self, job: Job, inputs: Inputs) -> Feed[Any]: ...

    def start(self, job: Job, driver: BatchDriver[Any], inputs: Inputs) -> Loop:
        """Begin with the batches; `driver` works with the feed that was made before."""
        ...

    def close(self) -> None:
        """The run has ended, whichever way."""
        ...
