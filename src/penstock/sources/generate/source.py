"""Synthetic streams as sources: `generate:clustered` with WITH options; also what `penstock generate` writes.

| kind | records |
| --- | --- |
| `uniform`, `zipf` | the papers' relation R(a, b, c, d) with `ts` and a `value`, from `sources.generate.synthetic` |
| `clustered`, `flows` | network records of 13 attributes in Pareto flows, from `sources.generate.flows` |
| `bursty` | the same, with the rate going up 5 to 10 times for seconds |
| `persons`, `auctions`, `bids` | the streams of an auction house, which fit together, from `sources.generate.auction` |

Delivery: nothing is stored, any row can be made again; the options are the stream.
To add a kind: a function `settings -> Recipe` here, with its options, and a line in `KINDS`.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.errors import SourceError
from penstock.logical.query import Field
from penstock.sources.base import TYPE_KEY, Abilities, Position, Split
from penstock.sources.boundaries import cut_at_boundary, split_at_boundaries
from penstock.sources.flags import without_columns
from penstock.sources.generate.auction import AUCTIONS, BIDS, PERSONS, STREAMS, Auctions
from penstock.sources.generate.flows import Flows
from penstock.sources.generate.synthetic import BLOCK, Attributes, Columns, RecordClock, block_random
from penstock.sources.live.picking import between, gathered
from penstock.sources.options import Options, integer, integers, moment, number
from penstock.triage.picks import Picks

VERSION = 1  # of the records: raise it when the same options make others
ADDRESS = {TYPE_KEY: b"INET"}
TIME = pa.field("ts", pa.timestamp("us", tz="UTC"))
FLOW_SCHEMA = pa.schema(
    [
        TIME,
        pa.field("src", pa.uint32(), metadata=ADDRESS),
        pa.field("dst", pa.uint32(), metadata=ADDRESS),
        pa.field("sport", pa.uint16()),
        pa.field("dport", pa.uint16()),
        pa.field("proto", pa.uint8()),
        pa.field("tos", pa.uint8()),
        pa.field("flags", pa.uint8()),
        pa.field("in_if", pa.uint16()),
        pa.field("out_if", pa.uint16()),
        pa.field("ttl", pa.uint8()),
        pa.field("vlan", pa.uint16()),
        pa.field("src_as", pa.uint16()),
        pa.field("dst_as", pa.uint16()),
        pa.field("bytes", pa.int32()),
        pa.field("packets", pa.int32()),
    ]
)
FLOW_ATTRIBUTES = tuple(FLOW_SCHEMA.names[1:14])
AUCTION_SCHEMAS = {
    PERSONS: pa.schema([("personID", pa.int64()), ("name", pa.string()), ("state", pa.string())]),
    AUCTIONS: pa.schema([TIME, ("auctionID", pa.int64()), ("sellerID", pa.int64()), ("startPrice", pa.int64())]),
    BIDS: pa.schema([TIME, ("auctionID", pa.int64()), ("bidderID", pa.int64()), ("bidPrice", pa.int64())]),
}
RATE, BID_RATE = 20_000.0, 250.0  # records a second; of an auction house, bids


@dataclass(frozen=True)
class GeneratedSource:
    """Rows 0..count of a synthetic stream; block k is the same in every process."""

    abilities: ClassVar[Abilities] = Abilities(random_access=True, rows_in_order=True, grows=False)
    kind: str
    seed: int
    count: int
    clock: RecordClock
    recipe: Attributes | Flows | Auctions

    def schema(self) -> pa.Schema:
        if isinstance(self.recipe, Flows):
            return FLOW_SCHEMA
        if isinstance(self.recipe, Auctions):
            return AUCTION_SCHEMAS[self.recipe.stream]
        return pa.schema([TIME, *(pa.field(name, pa.int32()) for name in (*self.recipe.names, "value"))])

    def rows(self) -> Position:
        return Position(self.count)

    def cut(self, start: Position, limit: int) -> Position:
        return cut_at_boundary(start, limit, self.rows(), _block_before)

    def splits(self, start: Position, stop: Position, parallelism: int) -> list[Split]:
        return split_at_boundaries(start, stop, parallelism, lambda at: _block_before(Position(at + BLOCK // 2)))

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([self.schema().field(name) for name in columns])
        for block in range(split.start // BLOCK, -(-split.stop // BLOCK)):
            base = block * BLOCK
            made = _made(self, block)
            stop = min(split.stop, base + BLOCK)
            for begin in range(max(split.start, base), stop, batch_rows):
                part = slice(begin - base, min(begin + batch_rows, stop) - base)
                yield _batch(made, schema, part)

    def read_picks(
        self, split: Split, columns: Sequence[str], batch_rows: int, picks: Picks
    ) -> Iterator[pa.RecordBatch]:
        rows, schema = picks.rows(split.start, split.stop), pa.schema([self.schema().field(name) for name in columns])
        blocks = range(split.start // BLOCK, -(-split.stop // BLOCK))
        wanted = ((block, between(rows, block * BLOCK, (block + 1) * BLOCK)) for block in blocks)
        found = (
            _batch(_made(self, block), schema, chosen[at : at + batch_rows])
            for block, chosen in wanted
            for at in range(0, len(chosen), batch_rows)
        )
        return gathered(found, batch_rows)

    def place(self, at: Position) -> str:
        return f"generate:{self.kind}, record {at + 1}"

    def narrowed(self, split: Split) -> GeneratedSource:
        return self

    def fingerprint(self) -> str:
        return hashlib.blake2b(f"{VERSION} {self!r}".encode(), digest_size=16).hexdigest()

    def block(self, block: int) -> Columns:
        rng, recipe = block_random(self.seed, zlib.crc32(self.kind.encode()), block), self.recipe
        if isinstance(recipe, Auctions):
            return recipe.block(rng, self.clock, block)
        times = self.clock.times(rng, block)
        made = recipe.columns(rng) if isinstance(recipe, Flows) else recipe.columns(rng, self.seed)
        return {"ts": times, **made}


@lru_cache(maxsize=2)
def _made(source: GeneratedSource, block: int) -> Columns:
    """A block; the last two are kept, because the next range of records of a stream often begins in one of them."""
    made = source.block(block)
    for values in made.values():
        values.flags.writeable = False
    return made


def _block_before(at: Position) -> Position:
    """Where the block starts that holds a position."""
    return Position(at // BLOCK * BLOCK)


def _batch(made: Columns, schema: pa.Schema, part: slice | np.ndarray[Any, Any]) -> pa.RecordBatch:
    """These rows of a block."""
    if not schema.names:
        return without_columns(part.stop - part.start if isinstance(part, slice) else len(part))
    return pa.record_batch([_column(made[field.name][part], field.type) for field in schema], schema=schema)


def _column(values: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    plain = pa.array(values)
    return plain if plain.type == kind else plain.view(kind)


def _uniform(options: Options) -> Attributes:
    count = options.take("attributes", integer(1, 26), 4)
    same: tuple[int, ...] = (100,)
    cardinality = options.take("cardinality", integers(1, 10_000_000), same)
    if len(cardinality) not in (1, count):
        raise SourceError(
            f"option 'cardinality' has {len(cardinality)} numbers for {count} attributes",
            "give one number for all, or one for each, as in '552, 1846, 2117, 2837'",
        )
    groups = options.take("groups", integer(0, 10_000_000), 0)
    return Attributes(cardinality * count if len(cardinality) == 1 else cardinality, groups=groups)


def _zipf(options: Options) -> Attributes:
    return replace(_uniform(options), exponent=options.take("exponent", number(0, 10), 1.0))


def _flows(options: Options) -> Flows:
    default = Flows()
    return Flows(
        options.take("flow_length", number(1, 10_000), default.flow_length),
        options.take("clients", integer(1, 10_000_000), default.clients),
        options.take("servers", integer(1, 10_000_000), default.servers),
        options.take("exponent", number(0, 10), default.exponent),
    )


def _auctions(options: Options, stream: str, bids: int) -> Auctions:
    life = options.take("life", number(60, 1e6), Auctions.life)
    return Auctions(stream, bids, life, options.take("hot", number(0, 0.99), Auctions.hot))


KINDS: dict[str, Callable[[Options], Attributes | Flows]] = {
    "uniform": _uniform,
    "zipf": _zipf,
    "clustered": _flows,
    "bursty": _flows,
}
ALIASES = {"flows": "clustered"}
HOUSE = "auction"


def open_generate(kind: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> GeneratedSource:
    """Open the synthetic stream of this kind; `rows`, `seed`, `rate` and `start` are common to all kinds."""
    name = ALIASES.get(kind.lower(), kind.lower())
    if name == HOUSE:
        each = ", ".join(f"generate:{stream}" for stream in STREAMS)
        raise SourceError(
            "generate:auction is three streams", f"name each: {each}; with equal options they fit together"
        )
    if name not in KINDS and name not in STREAMS:
        known = ", ".join(sorted([*KINDS, *ALIASES, *STREAMS]))
        raise SourceError(f"unknown kind of synthetic stream '{kind}'", f"one of {known}, as in generate:clustered")
    given = Options(f"generate:{kind}", options)
    rows = given.take("rows", integer(0, 10**12), 1_000_000)
    seed = given.take("seed", integer(0, 2**63 - 1), 7)
    start = given.take("start", moment, moment("2026-01-01T00:00:00Z"))
    rate = given.take("rate", number(0.001, 1e9), BID_RATE if name in STREAMS else RATE)
    clock = RecordClock(start, rate, seed)
    if name == "bursty":
        longest = given.take("burst_seconds", number(0.001, 29), 4.0)
        clock = replace(clock, burst_seconds=longest, burst_factor=given.take("burst_factor", number(1, 1000), 10.0))
    recipe = _auctions(given, name, rows) if name in STREAMS else KINDS[name](given)
    given.require_all_taken()
    return GeneratedSource(name, seed, recipe.count if isinstance(recipe, Auctions) else rows, clock, recipe)
