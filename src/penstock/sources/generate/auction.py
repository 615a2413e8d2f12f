"""Auctions, after NEXMark: persons, the auctions that they open, and bids for those that are open.

Of fifty events one is a person, three are auctions and 46 are bids. What an event is follows from its number, so each
of the three streams can be made from any record on, and all three fit together: a bid names an auction that is open at
its time, an auction a person.

    number of an event ──► time        number of an auction ──► time, seller, how long it lives, its prices

Bids prefer young auctions. Half of them go to any auction, half of the rest to every tenth, half of the rest to every
hundredth, and so on (`hot`): few auctions have most bids. Sellers and bidders are Zipf distributed over all persons.
The price of an auction rises as long as it lives; a bid is at the price of its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.sources.generate.synthetic import BLOCK, Columns, Floats, RecordClock, mix, unit, zipf_ranks

PERSONS, AUCTIONS, BIDS = "persons", "auctions", "bids"
STREAMS = (PERSONS, AUCTIONS, BIDS)
EVENTS, FIRST_AUCTION, FIRST_BID = 50, 1, 4  # of each fifty events, and where auctions and bids begin among them
AUCTION_EVENTS, BID_EVENTS = FIRST_BID - FIRST_AUCTION, EVENTS - FIRST_BID
SPREAD, SHORTEST, LONGEST = 1.0, 120.0, 6 * 3600.0  # of lives: sigma of their logarithm, limits in seconds
TRIES = 12  # auctions that a bid looks at before it takes the newest
LEVELS, STRIDE = 6, 10
SELLING, BIDDING = 0.8, 0.6  # Zipf exponents
MEDIAN_PRICE, LEAST_PRICE = 2500.0, 100  # cents
# Salts of the numbers that are drawn for an event, an auction, a person.
JITTER, LIFE, PRICE, GROWTH, SELLER, STATE, FIRST_NAME, LAST_NAME = range(101, 109)

# Inhabitants in 100,000 of the states, 2020.
STATES = {
    "CA": 395, "TX": 291, "FL": 215, "NY": 202, "PA": 130, "IL": 128, "OH": 118, "GA": 107, "NC": 104, "MI": 101,
    "NJ": 93, "VA": 86, "WA": 77, "AZ": 72, "MA": 70, "TN": 69, "IN": 68, "MD": 62, "MO": 62, "WI": 59, "CO": 58,
    "MN": 57, "SC": 51, "AL": 50, "LA": 47, "KY": 45, "OR": 42, "OK": 40, "CT": 36, "UT": 33, "IA": 32, "NV": 31,
    "AR": 30, "MS": 30, "KS": 29, "NM": 21, "NE": 20, "ID": 18, "WV": 18, "HI": 15, "NH": 14, "ME": 14, "RI": 11,
    "MT": 11, "DE": 10, "SD": 9, "ND": 8, "AK": 7, "DC": 7, "VT": 6, "WY": 6,
}  # fmt: skip
FIRST = (
    "Ada", "Ben", "Carla", "Dan", "Eva", "Frank", "Grace", "Hugo", "Ines", "Jack", "Kate", "Luis", "Mary", "Noah",
    "Olga", "Paul", "Quinn", "Rosa", "Sam", "Tara",
)  # fmt: skip
LAST = (
    "Adams", "Baker", "Clark", "Davis", "Evans", "Flores", "Garcia", "Hill", "Irwin", "Jones", "King", "Lopez", "Moore",
    "Nguyen", "Ortiz", "Perez", "Quist", "Reed", "Smith", "Turner", "Usher", "Vogel", "White", "Xu", "Young", "Zhang",
)  # fmt: skip


@dataclass(frozen=True)
class Auctions:
    """One of the three streams. `bids` is the number of bids, which says how many auctions and persons there are;
    `life` is the median time for which an auction is open, in seconds."""

    stream: str
    bids: int
    life: float = 1200.0
    hot: float = 0.5

    @property
    def rounds(self) -> int:
        """How many times fifty events there are."""
        return -(-self.bids // BID_EVENTS)

    @property
    def count(self) -> int:
        """Records of the stream."""
        return {PERSONS: self.persons, AUCTIONS: self.rounds * AUCTION_EVENTS, BIDS: self.bids}[self.stream]

    @property
    def persons(self) -> int:
        """Two at least, if there is anything: nobody bids for an own auction."""
        return max(self.rounds, 2) if self.bids else 0

    def block(self, rng: np.random.Generator, clock: RecordClock, block: int) -> Columns:
        """One block of records; those beyond the end mean nothing."""
        numbers = np.arange(block * BLOCK, (block + 1) * BLOCK)
        if self.stream == PERSONS:
            return _persons(numbers, clock.seed)
        if self.stream == AUCTIONS:
            seller, price = self._sellers(numbers, clock.seed), _start_prices(numbers, clock.seed)
            times = _times(_auction_events(numbers), clock)
            return {"ts": times, "auctionID": numbers + 1, "sellerID": seller + 1, "startPrice": price}
        return self._bids(rng, clock, numbers)

    def _bids(self, rng: np.random.Generator, clock: RecordClock, numbers: NDArray[np.int64]) -> Columns:
        round_, place = np.divmod(numbers, BID_EVENTS)
        times = _times(round_ * EVENTS + FIRST_BID + place, clock)
        auction = self._open_auctions(rng, clock, times, (round_ + 1) * AUCTION_EVENTS - 1)
        opened = _times(_auction_events(auction), clock)
        part = (times - opened) / (1e6 * self._lives(auction, clock.seed))
        growth = 0.5 + 4 * unit(mix(auction, GROWTH + clock.seed))
        price = _start_prices(auction, clock.seed) * (1 + growth * part**1.5)
        bidder = self._ranked(rng.random(len(numbers)), BIDDING, clock.seed + 1)
        bidder = np.where(bidder == self._sellers(auction, clock.seed), (bidder + 1) % self.persons, bidder)
        return {"ts": times, "auctionID": auction + 1, "bidderID": bidder + 1, "bidPrice": price.astype(np.int64)}

    def _open_auctions(
        self, rng: np.random.Generator, clock: RecordClock, times: NDArray[np.int64], newest: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """An auction for each bid that is open at its time: the first of some that are drawn, else the newest."""
        found, left = newest.copy(), np.arange(len(times))
        ages, chances = _ages(self.life)
        seconds = EVENTS / (AUCTION_EVENTS * clock.rate * EVENTS / BID_EVENTS)  # from one auction to the next
        for _ in range(TRIES):
            age = np.interp(rng.random(len(left)), chances, ages)
            # Early bids know young auctions only.
            back = np.where(age / seconds <= newest[left], age / seconds, rng.random(len(left)) * newest[left])
            level = np.minimum(np.floor(np.log(1 - rng.random(len(left))) / np.log(self.hot or 1e-9)), LEVELS)
            stride = (STRIDE**level).astype(np.int64)
            drawn = (newest[left] - back.astype(np.int64)) // stride * stride
            passed = (times[left] - _times(_auction_events(drawn), clock)) / 1e6
            hit = passed < self._lives(drawn, clock.seed)
            found[left[hit]] = drawn[hit]
            left = left[~hit]
        return found

    def _lives(self, auctions: NDArray[np.int64], seed: int) -> Floats:
        """How many seconds auctions are open."""
        return np.clip(self.life * np.exp(SPREAD * _normal(auctions, LIFE + seed)), SHORTEST, LONGEST)

    def _sellers(self, auctions: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        return self._ranked(unit(mix(auctions, SELLER + seed)), SELLING, seed)

    def _ranked(self, chance: Floats, exponent: float, seed: int) -> NDArray[np.int64]:
        """Persons, Zipf distributed; who is first among them has nothing to do with their numbers."""
        return _shuffled(self.persons, seed)[zipf_ranks(chance, self.persons, exponent)]


def _auction_events(auctions: NDArray[np.int64]) -> NDArray[np.int64]:
    round_, place = np.divmod(auctions, AUCTION_EVENTS)
    return round_ * EVENTS + FIRST_AUCTION + place


def _times(events: NDArray[np.int64], clock: RecordClock) -> NDArray[np.int64]:
    """When events happen: each somewhere in its own part of time, so that none comes before an earlier one."""
    rate = clock.rate * EVENTS / BID_EVENTS
    passed = (events + unit(mix(events, JITTER + clock.seed))) / rate
    return clock.start + np.floor(passed * 1e6).astype(np.int64)


def _start_prices(auctions: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    return np.maximum(MEDIAN_PRICE * np.exp(_normal(auctions, PRICE + seed)), LEAST_PRICE).astype(np.int64)


def _normal(numbers: NDArray[Any], salt: int) -> Floats:
    """A number for each, normally distributed (Box and Muller)."""
    first, second = unit(mix(numbers, salt)), unit(mix(mix(numbers, salt), 1))
    return np.asarray(np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second), np.float64)


def _persons(numbers: NDArray[np.int64], seed: int) -> Columns:
    shares = np.cumsum(list(STATES.values())) / sum(STATES.values())
    state = np.searchsorted(shares, unit(mix(numbers, STATE + seed)), side="right")
    first, last = (
        np.array(words)[(mix(numbers, salt + seed) % np.uint64(len(words))).astype(np.intp)]
        for words, salt in ((FIRST, FIRST_NAME), (LAST, LAST_NAME))
    )
    names = np.char.add(np.char.add(first, " "), last)
    return {"personID": numbers + 1, "name": names, "state": np.array(list(STATES))[state]}


@lru_cache(maxsize=8)
def _ages(life: float) -> tuple[Floats, Floats]:
    """Ages of auctions that are open, and which share of these is younger, where all ages come in equally."""
    ages = np.concatenate([[0.0], np.geomspace(1.0, LONGEST, 2000)])
    drawn = np.clip(life * np.exp(SPREAD * _normal(np.arange(100_000), LIFE)), SHORTEST, LONGEST)
    still = 1 - np.searchsorted(np.sort(drawn), ages, side="right") / len(drawn)
    share = np.concatenate([[0.0], np.cumsum(np.diff(ages) * (still[1:] + still[:-1]) / 2)])
    return ages, share / share[-1]


@lru_cache(maxsize=8)
def _shuffled(count: int, seed: int) -> NDArray[np.int64]:
    return np.argsort(mix(np.arange(count), seed + 77), kind="stable")
