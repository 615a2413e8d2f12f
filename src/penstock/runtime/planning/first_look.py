"""The planner of a run, made while its engine starts: Spark takes seconds for that in another process, workers one."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread

from penstock.logical.query import QuerySet
from penstock.runtime.planning.planners import RunPlanner, planner_of
from penstock.runtime.planning.waiting import ends_of
from penstock.runtime.settings import RunSettings
from penstock.sharing.options import Planning
from penstock.sources.base import Source
from penstock.state.protocol import Offset


class FirstLook:
    """Loads the planner and has it look at the sources, of which this much is read, beside whatever else this process
    does."""

    def __init__(
        self,
        planning: Planning,
        app: QuerySet,
        sources: Mapping[str, Source],
        settings: RunSettings,
        tasks: int,
        read: Offset,
    ) -> None:
        self._planning, self._app, self._sources, self._settings = planning, app, sources, settings
        self._tasks, self._read = tasks, read
        self._planner: RunPlanner | None = None
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._work, name="penstock-look", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            settings, ends = self._settings, ends_of(self._sources, self._settings.until)
            memory, rows = settings.task.task_memory, settings.batch_rows
            planner = planner_of(self._planning, self._app, memory, ends, self._read, rows)
            planner.look(self._app, self._sources, settings.batch_rows, self._tasks)
            self._planner = planner
        except BaseException as failure:
            self._failure = failure

    def planner(self) -> RunPlanner:
        """When it has looked."""
        self._thread.join()
        if self._planner is None:
            assert self._failure is not None
            raise self._failure
        return self._planner
