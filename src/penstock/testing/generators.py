"""Random apps by seed: a stream with its files, up to 30 queries, and the engine's settings.

    seed ──► random_case ──► Case ──► write(folder) ──► text of the app, ready to run

Results must not depend on the settings, so they are drawn to hurt: tables of two entries, chunks of one row,
memory for a handful of groups.  The number of micro-batches stays near eight, because each costs Spark a while.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.logical.types import Kind
from penstock.testing.random_stream import RandomStream, random_stream
from penstock.testing.random_text import random_aggregate, random_having, random_output, random_where
from penstock.testing.random_values import RandomColumn
from penstock.testing.randomness import Dice

STREAM = "events"
PLACEHOLDER = "@SOURCE@"
MOST_BATCHES = 8
MOST_QUERIES = 30
MOST_WINDOWS = 400  # of one query: more says nothing new and only takes time

# The same length twice where a window is spelled with range and slide.
LENGTHS = {
    1: ("1 second", "1000 milliseconds"),
    10: ("10 sec", "10 seconds"),
    90: ("90 seconds", "1.5 minutes"),
    300: ("5 minutes", "300 s"),
    3_600: ("1 hour", "60 min"),
    43_200: ("12 hours", "0.5 days"),
    86_400: ("1 day", "24 h"),
}
BARE = {
    1: "1 SECOND",
    10: "10 sec",
    90: "90 SECONDS",
    300: "5 minutes",
    3_600: "1 HOUR",
    43_200: "12 HOURS",
    86_400: "1 DAY",
}
MINUTES = (1, 2, 3, 5, 60, 1_440)
PREFIX_LENGTHS = (0, 1, 8, 16, 20, 24, 31, 32)  # the language refuses longer ones so far


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
class Case:
    """One random app; `app` has the placeholder where the source's URI belongs."""

    seed: int
    schema: pa.Schema
    tables: tuple[pa.Table, ...]
    row_groups: tuple[int, ...]
    app: str
    queries: tuple[str, ...]
    settings: Settings
    delay: str | None

    @property
    def data(self) -> pa.Table:
        """The whole stream."""
        return pa.concat_tables(self.tables)

    def write(self, folder: Path) -> str:
        """Write the stream's files and return the text of the app that reads them."""
        folder.mkdir(parents=True, exist_ok=True)
        for i, (table, rows) in enumerate(zip(self.tables, self.row_groups, strict=True)):
            pq.write_table(table, folder / f"part-{i:03d}.parquet", row_group_size=rows)
        return self.text(f"parquet:{folder}")

    def text(self, source: str) -> str:
        return self.app.replace(PLACEHOLDER, source)


@dataclass(frozen=True)
class _Key:
    """How an attribute is grouped by, and the name by which the select list can call it."""

    group: str
    name: str
    column: RandomColumn | None


def random_case(seed: int) -> Case:
    """The app of this seed; the same on every machine."""
    dice = Dice(seed)
    stream = random_stream(dice)
    names = tuple(f"q{i}" for i in range(_query_count(dice)))
    statements = [f"CREATE STREAM {STREAM} {stream.schema_text()}\n  FROM '{PLACEHOLDER}'{stream.clauses}"]
    statements += [f"CREATE QUERY {name} AS\n  {random_query(dice, stream)}" for name in names]
    tables = _files(dice, stream.table)
    row_groups = tuple(dice.pick((max(1, len(t) // 7), max(1, len(t) // 2), 100_000)) for t in tables)
    settings = _settings(dice, stream.table.num_rows)
    app = ";\n".join(statements) + ";\n"
    return Case(seed, stream.schema, tables, row_groups, app, names, settings, stream.delay)


def random_query(dice: Dice, stream: RandomStream) -> str:
    """One SELECT in one of the spellings of a tumbling window."""
    keys = _keys(dice, stream)
    plain = [(key.name, key.column) for key in keys if key.column is not None]
    time_column = _time_column(stream)
    aggregates = [random_aggregate(dice, (*stream.columns, time_column)) for _ in range(dice.between(0, 4))]
    bracket, group_by, every, time = _window(dice, stream.span)
    groups = [*group_by, *(key.group for key in keys)]
    outputs = [key.name for key in keys if dice.chance(0.8)] + ([time] if time and dice.chance(0.7) else [])
    outputs += aggregates
    if dice.chance(0.3) or not outputs:
        outputs.append(random_output(dice, aggregates, plain))
    where, having = (
        random_where(dice, (*stream.columns, *stream.columns, time_column)),
        random_having(dice, aggregates, plain),
    )
    clauses = [
        f"SELECT {', '.join(_aliased(outputs, {key.name for key in keys} | {time}))}",
        f"FROM {STREAM}{bracket}",
        f"WHERE {where}" if where else "",
        f"GROUP BY {', '.join(groups)}" if groups else "",
        f"HAVING {having}" if having else "",
        every,
    ]
    return "\n  ".join(clause for clause in clauses if clause)


def _time_column(stream: RandomStream) -> RandomColumn:
    return RandomColumn("ts", "TIMESTAMP", Kind.TIMESTAMP, stream.time, literals=("TIMESTAMP '2000-02-29 00:00:00'",))


def _query_count(dice: Dice) -> int:
    return dice.between(1, dice.pick((3, 8, MOST_QUERIES)))


def _keys(dice: Dice, stream: RandomStream) -> list[_Key]:
    """Up to five attributes; an address may come whole and by several prefixes."""
    candidates = [_Key("ts", "ts", _time_column(stream))] if dice.chance(0.1) else []
    for column in stream.columns:
        if column.name == "wide":
            continue
        candidates.append(_Key(column.name, column.name, column))
        if column.declared == "INET" and (stream.declared or column.marked):
            for length in dice.some(PREFIX_LENGTHS, 2):
                alias = f"{column.name}_{length}"
                candidates.append(_Key(f"{column.name}/{length} AS {alias}", alias, None))
    return dice.some(candidates, 5)


def _window(dice: Dice, span: int) -> tuple[str, list[str], str, str]:
    """Bracket after the stream, GROUP BY entry, EVERY clause, and the name of the time bucket if there is one."""
    if dice.chance(0.25):
        minutes = dice.pick([m for m in MINUTES if span <= m * 60 * MOST_WINDOWS])
        return "", [f"ts/{minutes} AS tb"], "", "tb"
    seconds = dice.pick([s for s in LENGTHS if span <= s * MOST_WINDOWS])
    one, other = LENGTHS[seconds][0], dice.pick(LENGTHS[seconds])
    brackets = (
        f" [RANGE '{one}' SLIDE '{other}']",
        f" [range by '{one}' slide by '{other}']",
        f" [WINDOW '{one}']",
        f" [WINDOW {BARE[seconds]}]",
    )
    if dice.chance(0.2):
        return "", [], f"EVERY {BARE[seconds]}", ""
    return dice.pick(brackets), [], "", ""


def _aliased(outputs: list[str], names: set[str]) -> list[str]:
    """Every output gets its own name; keys keep theirs the first time."""
    shown: list[str] = []
    for i, output in enumerate(outputs):
        shown.append(output if output in names and output not in shown else f"{output} AS o{i}")
    return shown


def _files(dice: Dice, table: pa.Table) -> tuple[pa.Table, ...]:
    cuts = sorted(dice.between(0, table.num_rows) for _ in range(dice.pick((0, 0, 1, 3))))
    edges = [0, *cuts, table.num_rows]
    return tuple(table.slice(a, b - a) for a, b in pairwise(edges))


def _settings(dice: Dice, rows: int) -> Settings:
    return Settings(
        batch_rows=max(1, -(-rows // dice.between(1, MOST_BATCHES))),
        parallelism=dice.between(1, 4),
        memory=dice.pick((0, 0, 512, 20_000, 1_000_000)),
        task_memory=dice.pick((20_000, 200_000, 256_000_000)),
        # A chunk of one row over 20,000 rows would test patience: single rows are for short streams.
        chunk_rows=dice.pick((1, 3, 64) if rows <= 600 else (100, 999, 4_096, 65_536)),
        table_rows=dice.pick((2, 16, 1_024)),
        slots=dice.pick((1, 2, 7, 16)),
    )
