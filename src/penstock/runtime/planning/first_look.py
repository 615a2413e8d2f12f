"""The planner of a run, made while its engine starts: Spark takes seconds for that in another process, workers one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from penstock.logical.query import QuerySet
from penstock.runtime.planning.planners import RunPlanner, planner_of
from penstock.runtime.settings import TaskSettings
from penstock.sharing.options import Planning


class FirstLook:
    """Loads the planner and has it look at the sources, beside whatever else this process does."""

    def __init__(
        self,
        planning: Planning,
        app: QuerySet,
        look: Callable[[RunPlanner], None],
        task_memory: int = TaskSettings().task_memory,
    ) -> None:
        self._planning, self._app, self._look, self._task_memory = planning, app, look, task_memory
        self._planner: RunPlanner | None = None
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._work, name="penstock-look", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            planner = planner_of(self._planning, self._app, self._task_memory)
            self._look(planner)
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
