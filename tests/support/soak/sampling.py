"""What is measured while a soak runs: memory of the run's processes, files and bytes on disk, batches.

Memory comes from /proc: resident bytes of the driver and the JVM, and of all Python workers together what they share
counted once. How full the JVM's heap is after a collection is asked of the JVM itself, by its attach socket (as `jcmd`
does, which a Java runtime does not have).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.testing.faults import DRIVER, JVM, WORKER, Running, alive, committed

MIB = 1 << 20
ATTACH_SECONDS = 5.0
FOLDERS = ("manifests", "segments", "spark", "versions", "lease", "files", "staged")
USED = re.compile(r"(?:garbage-first heap|generation|PSYoungGen|ParOldGen).*?used (\d+)K")


@dataclass(frozen=True)
class Sample:
    """One look: seconds since the soak began, which run it was, its batches, bytes of memory, files."""

    at: float
    phase: int
    age: float  # seconds since the run was started
    batches: int
    memory: dict[str, int]  # by role; `heap`: live bytes of the JVM's heap, where it was asked
    files: dict[str, int]  # of the checkpoint, by folder
    bytes: int  # of the checkpoint
    results: int  # files
    scratch: int  # files and folders that Spark keeps beside


@dataclass
class Recorder:
    """Takes samples of one run after the other."""

    scratch: Path
    began: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)

    def take(self, running: Running, phase: int, age: float, collect: bool) -> None:
        memory = dict.fromkeys((DRIVER, JVM, WORKER), 0)
        for process in alive(running):
            if process.role == WORKER:
                memory[WORKER] += _shared_once(process.pid)
            elif process.role in memory:  # a process that is just being forked looks like its parent
                memory[process.role] = max(memory[process.role], _resident(process.pid))
            if process.role == JVM and collect:
                heap = live_heap(process.pid)
                memory |= {} if heap is None else {"heap": heap}
        files, size = _checkpoint(running.launch.checkpoint)
        results = sum(1 for _ in running.launch.output.glob("*/*.parquet"))
        scratch = sum(len(folders) + len(names) for _, folders, names in os.walk(self.scratch))
        at = time.monotonic() - self.began
        batches = committed(running.launch.checkpoint)
        self.samples.append(Sample(at, phase, age, batches, memory, files, size, results, scratch))


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _shared_once(pid: int) -> int:
    """A process's share: pages that n processes use count as an n-th."""
    with contextlib.suppress(OSError):
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    return 0


def _checkpoint(checkpoint: Path) -> tuple[dict[str, int], int]:
    counts, size = dict.fromkeys(FOLDERS, 0), 0
    for path in _files(checkpoint):
        folder = path.relative_to(checkpoint).parts[0]
        counts[folder] = counts.get(folder, 0) + 1
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return counts, size


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):  # unlike rglob, does not mind folders that vanish
        yield from (Path(place) / name for name in names)


def live_heap(pid: int) -> int | None:
    """Bytes of the JVM's heap that are still used after a collection; None where it does not say."""
    if _ask_jvm(pid, "GC.run") is None:
        return None
    found = USED.findall(_ask_jvm(pid, "GC.heap_info") or "")
    return sum(map(int, found)) * 1024 if found else None


def _ask_jvm(pid: int, command: str) -> str | None:
    """A diagnostic command by the attach protocol of HotSpot."""
    address, request = f"/tmp/.java_pid{pid}", Path(f"/tmp/.attach_pid{pid}")
    try:
        if not os.path.exists(address) and not _open_socket(pid, address, request):
            return None
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(ATTACH_SECONDS)
            asked.connect(address)
            asked.sendall(b"\0".join([b"1", b"jcmd", command.encode(), b"", b"", b""]))
            answer = b""
            while piece := asked.recv(1 << 16):
                answer += piece
    except OSError:
        return None
    return answer.decode(errors="replace")


def _open_socket(pid: int, address: str, request: Path) -> bool:
    """A JVM that finds such a file when it gets the signal opens its socket."""
    request.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + ATTACH_SECONDS
        while not os.path.exists(address) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        request.unlink(missing_ok=True)
    return os.path.exists(address)
