"""Worker processes as the driver sees them: numbered tasks go out, the texts that they tell come back.

What is run travels once to each worker that takes a task of it, pickled. Whatever ends the pool ends its workers: a
`close`, the end of this process, a kill of it (`engine.zygote` says how).
"""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from penstock.errors import RunError
from penstock.runtime.engine.zygote import Run
from penstock.runtime.machine import worker_environment

AGAIN = "run again: it goes on from the checkpoint"
PATIENCE = 10.0  # seconds for the zygote to say how a worker died, or to end: it has nothing else to do


class Pool:
    """`size` workers, which are there as soon as they have loaded what tasks need, and these `modules`; tasks may be
    given before."""

    def __init__(self, size: int, modules: Sequence[str] = ()) -> None:
        pairs = [socket.socketpair() for _ in range(size + 1)]
        theirs = [other.fileno() for _, other in pairs]
        control, *sockets = map(str, theirs)
        self._zygote = subprocess.Popen(
            [sys.executable, "-P", "-m", "penstock.runtime.engine.zygote", control, ",".join(sockets), *modules],
            stdin=subprocess.DEVNULL, pass_fds=theirs, env=worker_environment(),
            process_group=0,  # Ctrl-C is for the driver, which ends between two batches
        )  # fmt: skip
        for _, other in pairs:
            other.close()
        self._control, *self._workers = (Connection(mine.detach()) for mine, _ in pairs)
        self._closed = False

    @property
    def zygote(self) -> int:
        """Process id; it ends after all workers."""
        return self._zygote.pid

    def told(self, count: int, run: Run) -> list[str]:
        """Run the tasks 0 … count - 1; what they tell, in no particular order."""
        try:
            return self._told(count, run)
        except BaseException:
            self.close()  # answers to come would be taken for those of later tasks
            raise

    def _told(self, count: int, run: Run) -> list[str]:
        body = pickle.dumps(run)
        waiting, texts = list(range(count))[::-1], list[str]()
        knowing: set[Connection] = set()
        idle, busy = list(self._workers), set[Connection]()
        while len(texts) < count:
            while idle and waiting:
                worker = idle.pop(0)
                self._send(worker, pickle.dumps((waiting.pop(), None if worker in knowing else body)))
                knowing.add(worker)
                busy.add(worker)
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                texts.append(self._answer(ready))
                busy.remove(ready)
                idle.append(ready)
        return texts

    def _send(self, worker: Connection, message: bytes) -> None:
        try:
            worker.send_bytes(message)
        except OSError:
            raise self._died(worker) from None

    def _answer(self, worker: Connection) -> str:
        try:
            text, error, trace = pickle.loads(worker.recv_bytes())
        except (EOFError, OSError):
            raise self._died(worker) from None
        if text is None:
            failed = RunError(f"a task failed: {error}", AGAIN)
            failed.add_note(trace)
            raise failed
        assert isinstance(text, str)
        return text

    def _died(self, worker: Connection) -> RunError:
        fact, number = "a worker process ended before its task did", self._workers.index(worker)
        with suppress(EOFError, OSError):  # the zygote may be gone as well
            while self._control.poll(PATIENCE):
                dead, code = self._control.recv()
                if dead == number:
                    return RunError(f"{fact}: {_end(code)}", _advice(code))
        return RunError(fact, AGAIN)

    def close(self) -> None:
        """End all workers, busy ones as well."""
        if self._closed:
            return
        self._closed = True
        for connection in (self._control, *self._workers):
            connection.close()
        try:
            self._zygote.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._zygote.kill()
            self._zygote.wait()


def _end(code: int) -> str:
    """How a process ended, in words.

    >>> _end(-9), _end(3)
    ('it was killed (SIGKILL)', 'its exit code is 3')
    """
    return f"it was killed ({signal.Signals(-code).name})" if code < 0 else f"its exit code is {code}"


def _advice(code: int) -> str:
    if code == -signal.SIGKILL:
        return f"if memory ran out, give --task-memory or --parallelism less; {AGAIN}"
    return AGAIN
