"""An auction house: three streams that fit together, however each of them is read."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import SourceError
from penstock.sources.base import Split, whole
from penstock.sources.generate.auction import STREAMS, Auctions
from penstock.sources.generate.source import open_generate


def table(kind: str, rows: int, **options: str) -> pa.Table:
    source = open_generate(kind, {"rows": str(rows), **options})
    return pa.Table.from_batches(source.read(whole(source), source.schema().names, 1 << 20), source.schema())


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    return column.cast(pa.int64()).to_numpy()


@pytest.mark.parametrize(("rows", "options"), [(200_000, {}), (70_000, {"rate": "20", "seed": "3", "life": "300"})])
def test_the_streams_fit_together(rows: int, options: dict[str, str]) -> None:
    persons, auctions, bids = (table(kind, rows, **options) for kind in STREAMS)
    assert bids.num_rows == rows
    assert auctions.num_rows == 3 * persons.num_rows == 3 * -(-rows // 46)
    for made, key in ((persons, "personID"), (auctions, "auctionID")):
        assert numbers(made[key]).tolist() == list(range(1, made.num_rows + 1))
    opened, seller, start = (numbers(auctions[name]) for name in ("ts", "sellerID", "startPrice"))
    at, of, bidder, price = (numbers(bids[name]) for name in ("ts", "auctionID", "bidderID", "bidPrice"))
    for times in (opened, at):
        assert (np.diff(times) >= 0).all()
    house = Auctions("bids", rows, float(options.get("life", "1200")))
    lives = house._lives(np.arange(auctions.num_rows), int(options.get("seed", "7")))
    age = (at - opened[of - 1]) / 1e6
    assert (age >= 0).all()
    assert (age < lives[of - 1]).all()
    assert (of == np.searchsorted(opened, at, side="right")).mean() < 0.05
    assert 120 <= lives.min() < 300 < 3600 < lives.max() <= 6 * 3600
    assert (bidder != seller[of - 1]).all()
    for person in (bidder, seller):
        assert person.min() >= 1
        assert person.max() <= persons.num_rows
    assert (price >= start[of - 1]).all()
    order = np.argsort(of, kind="stable")
    assert (np.diff(price[order])[np.diff(of[order]) == 0] >= 0).all()
    assert (price > 1.2 * start[of - 1]).mean() > 0.3


def test_few_auctions_have_most_bids() -> None:
    def counts(made: pa.Table, name: str) -> np.ndarray:
        return np.sort(np.bincount(numbers(made[name])))[::-1]

    bids = table("bids", 500_000)
    flat = counts(table("bids", 500_000, hot="0"), "auctionID")
    each = counts(bids, "auctionID")
    assert each[: len(each) // 100].sum() > 0.2 * 500_000
    assert flat[: len(flat) // 100].sum() < 0.1 * 500_000
    people = counts(bids, "bidderID")
    assert people[: len(people) // 100].sum() > 0.1 * 500_000
    states = table("persons", 2_000_000)["state"]
    shares = {row["values"]: row["counts"] / len(states) for row in pc.value_counts(states).to_pylist()}
    assert shares["CA"] == pytest.approx(0.119, abs=0.01)
    assert 0 < shares["VT"] < 0.005


def test_hours_of_bids() -> None:
    source = open_generate("bids", {"rows": "5000000"})
    last = next(iter(source.read(Split(4_999_999, 5_000_000), ["ts"], 1)))["ts"][0]
    assert (last.value - source.clock.start) / 3.6e9 == pytest.approx(5.55, abs=0.1)


@pytest.mark.parametrize("kind", STREAMS)
def test_any_cut_gives_the_same_records(kind: str) -> None:
    source = open_generate(kind, {"rows": "1500000"})
    names, rng = source.schema().names, random.Random(kind)
    for _ in range(4):
        start = rng.randint(0, source.rows() - 1)
        stop = min(source.rows(), start + rng.randint(1, 90_000))
        again = pickle.loads(pickle.dumps(source))
        middle, schema = (start + stop) // 2, source.schema()
        cuts = ((source, start, stop, 1 << 20), (again, start, middle, 777), (again, middle, stop, 9999))
        parts = [pa.Table.from_batches(one.read(Split(a, b), names, n), schema) for one, a, b, n in cuts]
        assert parts[0].equals(pa.concat_tables(parts[1:]))


def test_seeds_and_few_rows() -> None:
    assert not table("bids", 1000).equals(table("bids", 1000, seed="8"))
    assert table("bids", 1000).equals(table("bids", 1000))
    for rows, people in ((1, 2), (46, 2), (92, 2), (93, 3)):
        made = [table(kind, rows) for kind in STREAMS]
        assert [one.num_rows for one in made] == [people, 3 * -(-rows // 46), rows]
        assert pc.max(made[2]["bidderID"]).as_py() <= people
    assert [open_generate(kind, {"rows": "0"}).rows() for kind in STREAMS] == [0, 0, 0]


def test_refusals() -> None:
    with pytest.raises(SourceError, match="generate:auction is three streams") as error:
        open_generate("auction", {})
    assert "generate:bids" in error.value.hint
    with pytest.raises(SourceError, match="unknown option 'clients' of generate:bids"):
        open_generate("bids", {"clients": "3"})
    with pytest.raises(SourceError, match="option 'hot' of generate:bids is '2'"):
        open_generate("bids", {"hot": "2"})
