"""The process that worker processes are forked from: single-threaded, with libraries and kernels loaded, no JVM.

    driver ── starts ──► zygote: preload ──► fork a worker for each socket ──► watch
       ▲                                            │
       └──────────── a socket each ─────────────────┘

The user's process may have threads, which do not survive a fork; this one has none. A worker runs one task after the
other and ends when its socket or the zygote does. The zygote tells the driver how a worker died; when the driver is
gone (killed, even) it kills the workers, which may be busy, and ends as the last one.

    python -P -m penstock.runtime.engine.zygote CONTROL SOCKET,SOCKET… MODULE…      (inherited file descriptors)
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from select import select

from penstock.runtime.preload import preload

Run = Callable[[int], str]  # the text that a numbered task tells
PR_SET_PDEATHSIG = 1  # of Linux: a signal for when the parent dies


def main(control: int, sockets: list[int], modules: list[str]) -> None:
    preload(*modules)
    _without_pandas()
    me = os.getpid()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    workers: dict[int, int] = {}  # number by process id
    for number, socket in enumerate(sockets):
        pid = os.fork()
        if not pid:
            _end_with(me)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in {control, woken, wake, *sockets} - {socket}:
                if _open(other):
                    os.close(other)
            _work(Connection(socket))
        workers[pid] = number
        os.close(socket)
    _watch(Connection(control), woken, workers)


def _without_pandas() -> None:
    """Have pyarrow look for pandas now, in vain: it does when it first meets an array of numpy's, and loading it would
    take every worker a fifth of a second. Tasks hand it nothing of pandas'."""
    import numpy as np
    import pyarrow as pa

    if "pandas" not in sys.modules:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # that is how Python says that a module is missing
        with suppress(ImportError, AttributeError):  # it may say so, and does not look again
            pa.array(np.empty(0))
        del sys.modules["pandas"]


def _end_with(parent: int) -> None:
    """Nobody would end a busy worker after the zygote was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before that
            os._exit(1)


def _open(descriptor: int) -> bool:
    """The sockets of workers that were forked before are closed already."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _work(driver: Connection) -> None:
    """Run tasks until the driver is gone; a task comes with what is run if that is new."""
    run: Run | None = None
    while True:
        try:
            number, body = pickle.loads(driver.recv_bytes())
            answer = _answer(number, run := run if body is None else pickle.loads(body))
            driver.send_bytes(pickle.dumps(answer))
        except (EOFError, ConnectionError):
            os._exit(0)
        except BaseException:  # nothing of the zygote's may run in its child
            traceback.print_exc()
            os._exit(1)


def _answer(number: int, run: Run | None) -> tuple[str | None, str, str]:
    """What a task tells; where it failed with what is meant for nobody, the error and its trace."""
    try:
        assert run is not None
        return run(number), "", ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}", traceback.format_exc()


def _watch(driver: Connection, woken: int, workers: dict[int, int]) -> None:
    while True:
        ready, _, _ = select([driver.fileno(), woken], [], [])
        if driver.fileno() in ready:  # it says nothing: this is its end
            break
        os.read(woken, 4096)
        _reap(driver, workers)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    for pid in workers:
        os.waitpid(pid, 0)


def _reap(driver: Connection, workers: dict[int, int]) -> None:
    """Tell of the workers that have died."""
    for pid in list(workers):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            number = workers.pop(pid)
            try:
                driver.send((number, os.waitstatus_to_exitcode(status)))
            except OSError:  # the driver is just going
                return


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(text) for text in sys.argv[2].split(",")], sys.argv[3:])
