"""Results as files of a folder: one per query, batch and part, renamed into place when the batch is committed.

The base of `parquet`, `csv`, `json` and `memory`, which say how a table is written and read. Delivery: exactly
once; a plain glob `DIR/*.SUFFIX` sees every row once. Staged files lie in the hidden folder `DIR/.penstock`; what
an attempt that was killed left there goes when its batch is published, or with the next run. A mark,
`_penstock.json`, says whose results these are: another checkpoint's are not mixed with them.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from penstock.errors import ConfigError, RunError, why
from penstock.faults import reach
from penstock.sinks.base import Owner, Part
from penstock.sinks.staging import clear_staged, part_name, stage_file
from penstock.state.files import put_if_absent, replace
from penstock.state.lease import holder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

OWNER = "_penstock.json"
JSON_OWNER = "_penstock"  # where a glob of results would take the other for one of them
STAGED = ".penstock"
RESULT = re.compile(r".+-\d{8}-\d{4,}\.(parquet|csv|json)")


@dataclass(frozen=True)
class FolderSink(ABC):
    """Results of one query in a folder."""

    query: str
    folder: str
    schema: pa.Schema

    suffix: ClassVar[str]
    mark: ClassVar[str] = OWNER

    @abstractmethod
    def write(self, table: pa.Table, path: Path) -> None:
        """Write one file."""

    @abstractmethod
    def load(self, reader: DataFrameReader, path: str) -> DataFrame:
        """What the files below `path` hold; the reader knows the schema and which files count."""

    @abstractmethod
    def parse(self, path: Path) -> pa.Table:
        """What one file holds, with the columns and types of the schema."""

    def bind(self, spark: SparkSession) -> None:  # noqa: B027
        """Renaming needs no session."""

    def prepare(self, owner: Owner, overwrite: bool) -> None:
        folder = Path(self.folder)
        mark = folder / self.mark
        try:
            (folder / STAGED).mkdir(parents=True, exist_ok=True)
            if any((folder / name).exists() for name in (OWNER, JSON_OWNER) if name != self.mark):
                raise ConfigError(f"output folder {folder} holds results in another format", "choose another")
            new = put_if_absent(mark, _record(owner))
            found = None if new else _owner(mark)
            if found is None or found.id != owner.id:
                self._take_over(folder, found, overwrite)
                replace(mark, _record(owner))
            for leftover in [*(folder / STAGED).iterdir(), *folder.glob(f".{self.mark}.*.tmp")]:  # of a killed run
                leftover.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"output folder {folder} cannot be used: {why(error)}", "choose another") from error

    def _take_over(self, folder: Path, found: Owner | None, overwrite: bool) -> None:
        """Another run's results, or files of nobody we know: refuse to mix; remove results if asked to."""
        files = sorted(folder.iterdir())
        results = [path for path in files if RESULT.fullmatch(path.name)] if found else []
        if any(path.suffix == self.suffix and path not in results for path in files):
            (folder / self.mark).unlink(missing_ok=True)
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
        found = _owner(Path(self.folder) / self.mark)
        if found is None or found.id != owner.id:
            raise RunError(f"another run has taken over output folder {self.folder}", "give each run its own")

    def stage(self, table: pa.Table, batch: int, part: int, attempt: str) -> list[str]:
        folder, name = Path(self.folder), part_name(self.query, batch, part)
        staged = folder / STAGED / f"{name}-{attempt}"
        stage_file(staged, self.folder, partial(self.write, table))
        return [str(staged), str(folder / f"{name}{self.suffix}")]

    def stage_empty(self, batch: int, attempt: str) -> list[str]:
        return self.stage(self.schema.empty_table(), batch, 0, attempt)

    def publish(self, batch: int, parts: list[Part]) -> None:
        try:
            reach("sink.publish")
            for staged, final in parts:
                reach("sink.rename")
                _move(staged, final)
            if parts:
                clear_staged(Path(self.folder) / STAGED, batch)
        except OSError as error:
            fact = f"results of batch {batch} cannot be moved into {self.folder}: {why(error)}"
            raise RunError(fact, "mend the folder, then run again: they are kept aside") from error

    def place(self) -> str:
        return self.folder

    def needs_spark(self) -> bool:
        return False

    def claim(self) -> str | None:
        return self.folder

    def results(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        reader = spark.read.schema(from_arrow_schema(self.schema)).option("pathGlobFilter", f"*{self.suffix}")
        return self.load(reader, spark_path(self.folder))

    def table(self) -> pa.Table:
        names = (path for path in Path(self.folder).iterdir() if path.suffix == self.suffix)
        files = sorted((path for path in names if RESULT.fullmatch(path.name)), key=_number)
        try:
            return pa.concat_tables([self.schema.empty_table(), *map(self.parse, files)])
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = why(error) if isinstance(error, OSError) else str(error).partition("\n")[0]
            raise RunError(f"results in {self.folder} cannot be read: {reason}", "restore them") from error


def _number(path: Path) -> tuple[int, ...]:
    """Batch and part of a file of results."""
    return tuple(int(word) for word in path.stem.split("-")[-2:])


def spark_path(path: str) -> str:
    """A local path for Spark, which would take brackets, stars and braces in it for a pattern."""
    return "file://" + re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def _move(staged: str, final: str) -> None:
    try:
        os.replace(staged, final)
    except FileNotFoundError:
        if not os.path.exists(final):
            raise RunError(f"results {final} are gone, and so is {staged}", "start anew") from None


def _record(owner: Owner) -> bytes:
    return json.dumps(asdict(owner)).encode()


def _owner(mark: Path) -> Owner | None:
    """Whose results these are; None if nothing readable says so."""
    try:
        return Owner(**json.loads(mark.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
