"""`parquet:DIR`: one file per query, batch and part, renamed into place when the batch is committed.

A plain glob `DIR/*.parquet` sees every row once. Staged files lie in the hidden folder `DIR/.penstock`, without
the suffix; what an attempt that was killed left there goes when its part is published, or with the next run.
`_penstock.json` says whose results these are: another checkpoint's are not mixed with them.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import ConfigError, RunError
from penstock.faults import reach
from penstock.sinks.base import Owner
from penstock.state.files import put_if_absent, replace
from penstock.state.lease import holder

OWNER = "_penstock.json"
STAGED = ".penstock"
RESULT = re.compile(r".+-\d{8}-\d{4,}\.parquet")


@dataclass(frozen=True)
class ParquetSink:
    """Results of one query in a folder."""

    query: str
    folder: str

    def prepare(self, owner: Owner, overwrite: bool) -> None:
        folder = Path(self.folder)
        mark = folder / OWNER
        try:
            (folder / STAGED).mkdir(parents=True, exist_ok=True)
            new = put_if_absent(mark, _record(owner))
            found = None if new else _owner(mark)
            if found is None or found.id != owner.id:
                self._take_over(folder, found, overwrite)
                replace(mark, _record(owner))
            for leftover in [*(folder / STAGED).iterdir(), *folder.glob(f".{OWNER}.*.tmp")]:  # of a killed run
                leftover.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"output folder {folder} cannot be used: {error.strerror}", "choose another") from error

    def _take_over(self, folder: Path, found: Owner | None, overwrite: bool) -> None:
        """Another run's results, or files of nobody we know: refuse to mix; remove results if asked to."""
        files = sorted(folder.glob("*.parquet"))
        results = [path for path in files if RESULT.fullmatch(path.name)] if found else []
        if len(files) > len(results):
            (folder / OWNER).unlink(missing_ok=True)
            raise ConfigError(f"output folder {folder} holds files that are not results of penstock", "choose another")
        if found and holder(Path(found.checkpoint)) is not None:
            raise ConfigError(f"another run is writing to output folder {folder}", "end it first, or choose another")
        if (results or any((folder / STAGED).iterdir())) and not overwrite:
            raise ConfigError(
                f"output folder {folder} already holds results of another run",
                "use --overwrite, another folder, or the checkpoint of that run",
            )
        for path in results:
            path.unlink()

    def check(self, owner: Owner) -> None:
        found = _owner(Path(self.folder) / OWNER)
        if found is None or found.id != owner.id:
            raise RunError(f"another run has taken over output folder {self.folder}", "give each run its own")

    def stage(self, table: pa.Table, batch: int, part: int, attempt: str) -> list[str]:
        name = f"{self.query}-{batch:08d}-{part:04d}"
        staged, final = Path(self.folder) / STAGED / f"{name}-{attempt}", Path(self.folder) / f"{name}.parquet"
        reach("merge.write")
        try:
            # Without the Arrow schema readers see plain strings, not dictionaries.
            pq.write_table(table, staged, store_schema=False, **_encodings(table.schema))
        except OSError as error:
            staged.unlink(missing_ok=True)
            raise RunError(f"cannot write results to {self.folder}: {error}", "make room, then run again") from error
        return [str(staged), str(final)]

    def publish(self, staged: str, final: str) -> None:
        reach("sink.rename")
        try:
            os.replace(staged, final)
        except FileNotFoundError:
            if not os.path.exists(final):
                raise RunError(f"results {final} are gone, and so is {staged}", "start anew") from None
        _remove_attempts(Path(staged))

    def place(self) -> str:
        return self.folder

    def files(self) -> list[str]:
        return sorted(str(path) for path in Path(self.folder).glob("*.parquet"))


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Integers (keys, counts, sums) packed as small differences: a third smaller and faster to write than a
    dictionary that hardly repeats. Windows, strings and flags repeat."""
    integers = [field.name for field in schema if pa.types.is_integer(field.type)]
    wide = [*integers, *(field.name for field in schema if pa.types.is_floating(field.type))]
    return {
        "use_dictionary": [name for name in schema.names if name not in wide],
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED") or None,
    }


def _record(owner: Owner) -> bytes:
    return json.dumps(asdict(owner)).encode()


def _owner(mark: Path) -> Owner | None:
    """Whose results these are; None if nothing readable says so."""
    try:
        return Owner(**json.loads(mark.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _remove_attempts(staged: Path) -> None:
    """Remove what other attempts at the same part left: Spark ran the task again after its worker was killed."""
    part = staged.name.rpartition("-")[0] + "-"
    for path in staged.parent.glob("*"):
        if path.name.startswith(part):
            path.unlink(missing_ok=True)
