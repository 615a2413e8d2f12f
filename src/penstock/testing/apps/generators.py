"""Random apps by seed: a stream with its files, up to 30 queries, and the engine's settings.

    seed ──► random_case ──► Case ──► write(folder) ──► text of the app, ready to run

Results must not depend on the settings, so they are drawn to hurt: tables of two entries, chunks of one row,
memory for a handful of groups.  The number of micro-batches stays near eight, because each costs Spark a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from penstock.testing.apps.random_files import text_formats, write_file
from penstock.testing.apps.random_query import MOST_RESULTS, Made, RandomInput, as_input, random_select
from penstock.testing.apps.random_stream import RandomStream, random_stream
from penstock.testing.apps.random_terms import term_of
from penstock.testing.apps.random_windows import Extent
from penstock.testing.apps.randomness import Dice

STREAM = "events"
PLACEHOLDER = "@SOURCE@"
MOST_BATCHES = 8
MOST_QUERIES = 30
MOST_PAIRS = 600_000  # records in windows, over all windows and queries of an app
MOST_DEPTH = 2  # of queries on queries


@dataclass(frozen=True)
class Settings:
    """Keyword arguments of `App.start` that must not change any result (`batch_rows`: where nothing is late)."""

    batch_rows: int
    parallelism: int
    memory: int
    task_memory: int
    chunk_rows: int
    table_rows: int
    slots: int

    def as_arguments(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True)
class RandomCase:
    """One random app; `app` has the placeholder where the source's URI belongs, `formats` can hold its data."""

    seed: int
    schema: pa.Schema
    tables: tuple[pa.Table, ...]
    row_groups: tuple[int, ...]
    app: str
    queries: tuple[str, ...]
    settings: Settings
    delay: str | None
    formats: tuple[str, ...] = ("parquet",)

    @property
    def data(self) -> pa.Table:
        """The whole stream."""
        return pa.concat_tables(self.tables)

    def write(self, folder: Path, format: str = "parquet") -> str:
        """Write the stream's files and return the text of the app that reads them."""
        if format not in self.formats:
            raise ValueError(f"the data of seed {self.seed} cannot be written as {format}, only as {self.formats}")
        folder.mkdir(parents=True, exist_ok=True)
        for i, (table, rows) in enumerate(zip(self.tables, self.row_groups, strict=True)):
            write_file(table, folder / f"part-{i:03d}.{format}", format, rows)
        return self.text(f"{format}:{folder}")

    def text(self, source: str) -> str:
        return self.app.replace(PLACEHOLDER, source)


def random_case(seed: int) -> RandomCase:
    """The app of this seed; the same on every machine."""
    dice = Dice(seed)
    stream = random_stream(dice)
    names = tuple(f"q{i}" for i in range(_query_count(dice)))
    statements = [f"CREATE STREAM {STREAM} {stream.schema_text()}\n  FROM '{PLACEHOLDER}'{stream.clauses}"]
    statements += _queries(dice, stream, names)
    tables = split_in_files(dice, stream.table)
    row_groups = tuple(dice.pick((max(1, len(t) // 7), max(1, len(t) // 2), 100_000)) for t in tables)
    settings = random_settings(dice, stream.table.num_rows)
    app = ";\n".join(statements) + ";\n"
    formats = ("parquet", "arrow", *text_formats(stream))
    return RandomCase(seed, stream.schema, tables, row_groups, app, names, settings, stream.delay, formats)


def _query_count(dice: Dice) -> int:
    return dice.between(1, dice.pick((3, 8, MOST_QUERIES)))


def _queries(dice: Dice, stream: RandomStream, names: tuple[str, ...]) -> Iterator[str]:
    """CREATE QUERY statements; some read the results of an earlier one, or of a SELECT inside them."""
    rows = stream.table.num_rows
    root = _input(stream, max(rows, MOST_PAIRS // len(names)))
    earlier: list[tuple[int, RandomInput]] = []
    for name in names:
        prologue, source, depth = _source(dice, root, earlier, stream.delay is None)
        made = random_select(dice, source)
        yield f"CREATE QUERY {name} AS\n  {prologue}{made.text}"
        if depth < MOST_DEPTH and _readable(made, stream.delay is None):
            earlier.append((depth + 1, as_input(made, name, source)))


def _input(stream: RandomStream, pairs: int) -> RandomInput:
    terms = tuple(term_of(column) for column in stream.columns if column.name != "wide")
    wide = tuple(term_of(column) for column in stream.columns if column.name == "wide")
    return RandomInput(STREAM, terms, "ts", Extent(stream.table.num_rows, stream.reach, pairs), wide)


def _source(
    dice: Dice, root: RandomInput, earlier: list[tuple[int, RandomInput]], endless: bool
) -> tuple[str, RandomInput, int]:
    """What a query reads: text before its SELECT, the input, and how many queries stand below it."""
    if earlier and dice.chance(0.15):
        depth, source = dice.pick(earlier)
        return "", source, depth
    depth, prologue, source = 0, "", root
    while depth < MOST_DEPTH and dice.chance(0.12):
        made = random_select(dice, source)
        if not _readable(made, endless):
            break
        name, depth = f"x{depth}", depth + 1
        if prologue or dice.chance(0.5):
            prologue = f"{prologue.rstrip()}, " if prologue else "WITH "
            prologue += f"{name} AS (\n  {made.text})\n  "
            source = as_input(made, name, source)
        else:
            source = as_input(made, f"(\n  {made.text}) AS {name}", source)
            break
    return prologue, source, depth


def _readable(made: Made, endless: bool) -> bool:
    """Whether another query may read the results: not too many, and none late (windows of rows end at times of
    their records, which a watermark may have passed)."""
    return made.rows <= MOST_RESULTS and bool(made.outputs) and (endless or not made.window.of_rows)


def split_in_files(dice: Dice, table: pa.Table) -> tuple[pa.Table, ...]:
    cuts = sorted(dice.between(0, table.num_rows) for _ in range(dice.pick((0, 0, 1, 3))))
    edges = [0, *cuts, table.num_rows]
    return tuple(table.slice(a, b - a) for a, b in pairwise(edges))


def random_settings(dice: Dice, rows: int) -> Settings:
    return Settings(
        batch_rows=max(1, -(-rows // dice.pick((1, 2, 3, 5, MOST_BATCHES, MOST_BATCHES)))),
        parallelism=dice.between(1, 4),
        memory=dice.pick((0, 0, 512, 20_000, 1_000_000)),
        task_memory=dice.pick((20_000, 200_000, 256_000_000)),
        # A chunk of one row over 20,000 rows would test patience: single rows are for short streams.
        chunk_rows=dice.pick((1, 3, 64) if rows <= 600 else (100, 999, 4_096, 65_536)),
        table_rows=dice.pick((2, 16, 1_024)),
        slots=dice.pick((1, 2, 7, 16)),
    )
