"""Work in a thread that is awaited elsewhere, as Spark's streaming queries are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Once:
    """Runs `work` in a thread; behaves as a StreamingQuery does."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, name="penstock-batch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # raised again where the run is awaited
            self._error = error

    @property
    def isActive(self) -> bool:
        return self._thread.is_alive()

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self.isActive}

    def awaitTermination(self, timeout: float | None = None) -> bool:
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def stop(self) -> None:
        """A batch is not interrupted."""
        self._thread.join()
