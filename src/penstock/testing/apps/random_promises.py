"""Random apps whose queries all promise a delay, by seed: a stream that is replayed by the clock, up to eight queries.

As in `generators`, but for what a promise does not go with: queries on results, windows of rows, values that some
records alone do not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.logical.types import TIMESTAMP
from penstock.testing.apps.generators import (
    MOST_BATCHES,
    MOST_PAIRS,
    PLACEHOLDER,
    STREAM,
    RandomCase,
    random_settings,
    split_in_files,
)
from penstock.testing.apps.random_files import text_formats
from penstock.testing.apps.random_query import RandomInput, random_select
from penstock.testing.apps.random_stream import RandomStream, random_stream
from penstock.testing.apps.random_terms import RandomTerm, term_of
from penstock.testing.apps.random_windows import Extent
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.columns import read_column

MOST_QUERIES = 8
SPEEDS = (1_000.0, 12_345.678, 1e6)  # delays of watermarks are seconds of the clock then
PROMISES = ("2 hours", "1 day")  # beyond any delay of a watermark, at any of these speeds
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 to 9999
# Values of all records, which some of them do not tell.
UNTOLD = re.compile(r"(count|sum|avg)\(DISTINCT|entropy\(")


def random_promised_case(seed: int) -> RandomCase:
    """The app of this seed; the same on every machine. Its source is live, wherever its text is put to."""
    dice = Dice(seed)
    stream = _replayed(dice)
    names = tuple(f"q{i}" for i in range(dice.between(1, dice.pick((3, MOST_QUERIES)))))
    live = f"FROM '{PLACEHOLDER}' WITH (speed = {dice.pick(SPEEDS):g})"
    keep = dice.pick(("", "\n  ON OVERLOAD KEEP RESERVOIR (1)"))
    statements = [f"CREATE STREAM {STREAM} {stream.schema_text()}\n  {live}{stream.clauses}{keep}"]
    statements += _queries(dice, stream, names)
    tables = split_in_files(dice, stream.table)
    row_groups = tuple(dice.pick((max(1, len(t) // 7), max(1, len(t) // 2), 100_000)) for t in tables)
    app = ";\n".join(statements) + ";\n"
    formats = ("parquet", "arrow", *text_formats(stream))
    settings = random_settings(dice, stream.table.num_rows)
    return RandomCase(seed, stream.schema, tables, row_groups, app, names, settings, stream.delay, formats)


def _replayed(dice: Dice) -> RandomStream:
    """A stream with a watermark, and with a time to begin at."""
    while True:
        stream = random_stream(dice)
        if stream.delay is not None and _usable(stream.time):
            return stream


def _usable(time: pa.Array) -> bool:
    known = read_column(pa.chunked_array([time]), TIMESTAMP).array.drop_null().to_numpy(zero_copy_only=False)
    return bool(np.any((known >= FIRST) & (known <= LAST)))


def _queries(dice: Dice, stream: RandomStream, names: tuple[str, ...]) -> Iterator[str]:
    rows = stream.table.num_rows
    pairs = max(rows, MOST_PAIRS // (MOST_BATCHES * len(names)))
    terms = tuple(term_of(column) for column in stream.columns)
    source = RandomInput(STREAM, terms, "ts", Extent(rows, stream.reach, pairs, of_rows=False))
    for name in names:
        yield f"CREATE QUERY {name} AS\n  {_select(dice, source)}\n  LIMIT DELAY TO '{dice.pick(PROMISES)}'"


def _select(dice: Dice, source: RandomInput) -> str:
    while True:
        made = random_select(dice, source)
        if not UNTOLD.search(made.text):
            return _looking_at_estimates(dice, made.text, made.outputs)


def _looking_at_estimates(dice: Dice, text: str, outputs: tuple[RandomTerm, ...]) -> str:
    """Some order by what was read, or by what is estimated: both are exact where the output is a number of records."""
    counted = [term.text for term in outputs if re.search(rf"count\([^)]*\) AS {term.text}\b", text)]
    if not counted or "ORDER BY" in text or "LIMIT" in text or dice.chance(0.8):
        return text
    chosen = f"{dice.pick(('exact', 'estimated'))}_{dice.pick(counted)}"
    return f"{text}\n  ORDER BY {chosen} DESC" + dice.pick(("", " LIMIT 2"))
