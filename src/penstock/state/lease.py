"""The lease: at most one run writes to a checkpoint.

A run owns the checkpoint by having created the newest numbered file in `lease/` (an exclusive create decides
a race). The file names its processes and is renewed while the run lives. A new run takes over when the owner
released it, when its processes are gone (same machine, by process id and start time), or when it was not
renewed for a while (another machine). An owner that was taken over sees a newer number and may write no more.

The clocks of two machines may differ, and jump. A lease of another machine that looks old, or comes from the
future, is therefore watched, by a clock that nobody sets: only one that is not renewed meanwhile is taken over.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from penstock import clock
from penstock.errors import StateError
from penstock.state.data import from_data, to_data
from penstock.state.files import put_if_absent, replace

FOLDER = "lease"
RENEW_SECONDS = 5.0
EXPIRE_SECONDS = 60.0
WATCH_SECONDS = 15.0  # three renewals: who misses them all is not there
LINGER_SECONDS = 20.0  # how long a dead driver's JVM may take to notice

Identity = tuple[int, str | None]  # process id and start time, taken when the lease was: a renewal may find it ended


@dataclass(frozen=True)
class LeaseRecord:
    """What the file of a lease says: whose it is, and when that was last known, by the wall clock."""

    host: str
    processes: tuple[Identity, ...]
    renewed: float
    released: bool = False


class Lease:
    """Held from `acquire` until `release`; `check` before every write that others rely on."""

    def __init__(self, checkpoint: Path, number: int, processes: list[Identity]) -> None:
        self._folder, self._number = checkpoint / FOLDER, number
        self._processes = processes
        self._stopped = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="penstock-lease", daemon=True)
        self._renewer.start()

    def hold_for(self, processes: list[int]) -> None:
        """Name the processes of this run anew: its driver first, then those that were started since."""
        self._processes = [(pid, _started(pid)) for pid in processes]
        self.check()
        replace(_path(self._folder, self._number), _record(self._processes))

    def check(self) -> None:
        """Raise unless this run is still the owner."""
        if _newest(self._folder) != self._number:
            raise StateError("another run has taken over this checkpoint", "this run stops; nothing was lost")

    def release(self) -> None:
        self._stopped.set()
        self._renewer.join()
        path = _path(self._folder, self._number)
        if _newest(self._folder) == self._number:
            try:
                replace(path, _record([], released=True))
            except OSError:  # a full disk: an empty record needs no room, and says that nobody holds the lease
                with contextlib.suppress(OSError):
                    os.truncate(path, 0)

    def _renew(self) -> None:
        while not self._stopped.wait(RENEW_SECONDS):
            with contextlib.suppress(OSError):  # a full disk must not end the renewals for good
                if _newest(self._folder) == self._number:
                    replace(_path(self._folder, self._number), _record(self._processes))


def acquire(checkpoint: Path, processes: list[int]) -> Lease:
    """Take the checkpoint for these processes (driver first, then its JVM), or say who holds it."""
    folder = checkpoint / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    mine: list[Identity] = [(pid, _started(pid)) for pid in processes]
    deadline = time.monotonic() + LINGER_SECONDS
    while True:
        held = _newest(folder)
        owner = _read(folder, held)
        if owner is None or (_gone(owner) and not _renewed(folder, held, owner)):
            break
        driver_dead = owner.host == socket.gethostname() and not _alive(owner.processes[0])
        if not driver_dead or time.monotonic() > deadline:
            raise StateError(
                f"checkpoint {checkpoint} is in use by process {owner.processes[0][0]} on {owner.host}",
                "end that run first, or use another checkpoint",
            )
        time.sleep(0.1)
    if not put_if_absent(_path(folder, held + 1), _record(mine)):
        raise StateError(f"checkpoint {checkpoint} was taken by another run just now", "use another checkpoint")
    if _newest(folder) != held + 1:  # others came and went while this one was looking
        _path(folder, held + 1).unlink(missing_ok=True)
        raise StateError(f"checkpoint {checkpoint} was taken by another run just now", "use another checkpoint")
    for old in folder.glob("[0-9]*.json"):
        if int(old.stem) <= held:
            old.unlink(missing_ok=True)
    return Lease(checkpoint, held + 1, mine)


def holder(checkpoint: Path) -> LeaseRecord | None:
    """Who holds the checkpoint now; None if nobody alive does."""
    owner = _read(checkpoint / FOLDER, _newest(checkpoint / FOLDER))
    return None if owner is None or _gone(owner) else owner


def _record(processes: list[Identity], released: bool = False) -> bytes:
    record = LeaseRecord(socket.gethostname(), tuple(processes), clock.now(), released)
    return json.dumps(to_data(record)).encode()


def _read(folder: Path, number: int) -> LeaseRecord | None:
    path = _path(folder, number)
    try:
        record = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return from_data(LeaseRecord, record, f"lease {path}")


def _gone(owner: LeaseRecord) -> bool:
    if owner.released:
        return True
    if owner.host == socket.gethostname():
        return not any(_alive(process) for process in owner.processes)
    return abs(clock.now() - owner.renewed) > EXPIRE_SECONDS


def _renewed(folder: Path, number: int, owner: LeaseRecord) -> bool:
    """Whether an owner on another machine whose lease looks expired lives after all; takes a while to find out."""
    if owner.released or owner.host == socket.gethostname():
        return False
    deadline = time.monotonic() + WATCH_SECONDS
    while time.monotonic() < deadline:
        if _newest(folder) != number or _read(folder, number) != owner:
            return True
        time.sleep(0.1)
    return False


def _alive(process: Identity) -> bool:
    """Whether this very process runs; a reused process id has another start time."""
    pid, started = process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return started is None or _started(pid) == started


def _started(pid: int) -> str | None:
    """The kernel's start time of a process; None where it cannot be read (zombies count as ended)."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return "ended" if state in "ZX" else fields[18]


def _newest(folder: Path) -> int:
    return max((int(path.stem) for path in folder.glob("[0-9]*.json")), default=0)


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.json"
