"""A small file system that fills: a mounted one where that is allowed, else a limit on the size of every file.

    with small_disk(folder) as disk:
        launch = disk.filled(launch, room=60 << 10)     # places of the launch in disk.folder have this much room
        ...                                             # run: it must end with one message
        disk.clear()                                    # room again: run without the limit

`Disk.kind` says which of the two it is. With a limit (`LIMITED`) the system says "File too large" instead of "No
space left on device", and small files always have room.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.testing.faults.runs import Launch

MOUNTED, LIMITED = "mounted", "limited"
SIZE = 64 << 20
MESSAGES = {MOUNTED: "No space left on device", LIMITED: "File too large"}


@dataclass(frozen=True)
class Disk:
    """A folder whose room can be taken away and given back."""

    folder: Path
    size: int
    kind: str

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    @property
    def message(self) -> str:
        """What the system says when there is no room."""
        return MESSAGES[self.kind]

    def filled(self, launch: Launch, room: int) -> Launch:
        """Leave so much room; returns the launch that will meet it."""
        if self.kind == LIMITED:
            return replace(launch, file_limit=room)
        with open(self._filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.size - room)
        return launch

    def clear(self) -> None:
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: int = SIZE, mount: bool = True) -> Iterator[Disk]:
    """A small disk at `folder`, which is made; `mount=False` takes the limit even where mounting is allowed."""
    folder.mkdir(parents=True)
    if not mount or not _mounted(folder, size):
        yield Disk(folder, size, LIMITED)
        return
    try:
        yield Disk(folder, size, MOUNTED)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mounted(folder: Path, size: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
