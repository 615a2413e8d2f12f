"""Joined streams are read in step."""

from __future__ import annotations

import random

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.runtime.batch.in_step import FIRST, batch_limits, partners
from penstock.state.protocol import StreamState

SECOND = 1_000_000


def app(*queries: str) -> QuerySet:
    streams = [f"CREATE STREAM {name} (ts TIMESTAMP, k INT) FROM 'parquet:{name}'" for name in "abcd"]
    made = [f"CREATE QUERY q{number} AS SELECT {text}" for number, text in enumerate(queries)]
    return resolve_app(";\n".join([*streams, *made]), "test", lambda uri, options: ())


JOINED = app(
    "count(*) FROM a [RANGE '10 seconds'], b [RANGE '10 seconds'] WHERE a.k = b.k",
    "count(*) FROM c [RANGE '1 minute']",
    "count(*) FROM d [RANGE '1 minute']",
)


def state(rows: int, seconds: float) -> StreamState:
    return StreamState(rows, None, int(seconds * SECOND), 0)


def test_partners_are_streams_that_a_join_connects() -> None:
    assert [(one.streams, one.slide) for one in partners(JOINED)] == [(("a", "b"), 10 * SECOND)]
    through = app(
        "k, count(*) AS n FROM a [RANGE '5 seconds'] GROUP BY k",
        "count(*) FROM q0 [RANGE '20 seconds'], c [RANGE '20 seconds'] WHERE q0.k = c.k",
        "count(*) FROM a x [RANGE '5 seconds'], a y [RANGE '5 seconds'] WHERE x.k = y.k",
    )
    assert [one.streams for one in partners(through)] == [("a", "c")]


def test_a_stream_waits_for_a_partner_that_has_unread_records() -> None:
    known = {"a": state(100, 30), "b": state(100, 19), "c": state(5, 500), "d": state(5, 1)}
    everything = frozenset("abcd")
    limits = batch_limits(JOINED, known, everything, 1000)
    assert limits == {"a": 0, "b": 1000, "c": 1000, "d": 1000}
    assert batch_limits(JOINED, known, everything - {"b"}, 1000)["a"] == 1000  # nothing to wait for
    near = known | {"b": state(100, 21)}
    assert batch_limits(JOINED, near, everything, 1000)["a"] > 0


def test_rows_are_shared_by_density_once_it_is_known() -> None:
    assert batch_limits(JOINED, {}, frozenset("ab"), 800) == {"a": 800 // FIRST, "b": 800 // FIRST}
    known = {"a": state(1000, 10), "b": state(100, 10)}
    assert batch_limits(JOINED, known, frozenset("ab"), 800) == {"a": 800, "b": 80}


def test_something_is_always_read() -> None:
    rng = random.Random(3)
    chain = app(
        "count(*) FROM a [RANGE '1 second'], b [RANGE '1 second'] WHERE a.k = b.k",
        "count(*) FROM b [RANGE '7 seconds'], c [RANGE '7 seconds'], d [RANGE '7 seconds'] WHERE b.k = c.k"
        " AND c.k = d.k",
    )
    for _ in range(500):
        known = {name: state(rng.randrange(1, 99), rng.uniform(0, 60)) for name in "abcd" if rng.random() < 0.9}
        unread = frozenset(name for name in "abcd" if rng.random() < 0.8)
        limits = batch_limits(chain, known, unread, 100)
        assert set(limits) == unread
        assert not unread or any(limits.values()), (known, unread)
