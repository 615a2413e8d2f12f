"""What a run may change on a checkpoint: queries come and go, everything else is refused by name and with advice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import StateError
from penstock.logical.owed import with_owed
from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.logical.resolve.promises.clause import arrives
from penstock.runtime.batch.offsets import decide, epoch_of, in_order
from penstock.runtime.epoch import cutoff, first_window, landmark_start
from penstock.runtime.run.changes import adopt, check_changes
from penstock.sharing.options import Planning
from penstock.sharing.plan import unshared_plans
from penstock.state import versions
from penstock.state.data import to_data
from penstock.state.manifest import Manifest, first_manifest
from penstock.state.protocol import Offset, StreamOffset, StreamState
from penstock.state.versions import Version

COLUMNS = "(ts TIMESTAMP, a INT, b INT, src INET)"
STREAM = f"CREATE STREAM s {COLUMNS} FROM 'parquet:x' WATERMARK ts DELAY '1 s' MAX AHEAD '1 hour';"
FIRST = """CREATE QUERY q AS SELECT a, count(*) AS n FROM s [RANGE '1 minute'] WHERE b > 1 GROUP BY a
           HAVING count(*) > 1 ORDER BY n LIMIT 5;"""
SECOND = "CREATE QUERY r AS SELECT count(*) AS n FROM s [RANGE '1 minute'];"
OUTPUTS = {"q": "/out/q", "r": "/out/r"}


def app_of(*statements: str) -> QuerySet:
    return resolve_app("\n".join(statements), "app.sql", lambda uri, options: ())


def version_of(number: int, app: QuerySet) -> Version:
    return Version(number, app, unshared_plans(app), OUTPUTS)


def adopted(checkpoint: Path, app: QuerySet, memory: int, outputs: dict[str, str]) -> Version:
    return adopt(checkpoint, app, Planning("none", memory=memory), lambda since: unshared_plans(app, memory), outputs)


def refused(before: QuerySet, after: QuerySet, outputs: dict[str, str] = OUTPUTS, **fields: Any) -> str:
    """The message with which the change is refused."""
    last = replace(version_of(3, before), **fields)
    with pytest.raises(StateError) as caught:
        check_changes(Path("/ck"), last, after, outputs)
    assert caught.value.hint
    return str(caught.value.fact)


STREAM_CHANGES = {
    "its columns": STREAM.replace("b INT", "b BIGINT"),
    "its source": STREAM.replace("parquet:x", "parquet:y"),
    "its options": STREAM.replace("'parquet:x'", "'parquet:x' WITH (pattern = '*')"),
    "its watermark delay": STREAM.replace("1 s", "2 s"),
    "its MAX AHEAD": STREAM.replace("1 hour", "2 hours"),
}
QUERY_CHANGES = {
    "its window": FIRST.replace("'1 minute'", "'2 minutes'"),
    "its WHERE": FIRST.replace("b > 1", "b > 2"),
    "its GROUP BY": FIRST.replace("SELECT a,", "SELECT").replace("GROUP BY a", "GROUP BY b"),
    "its select list": FIRST.replace("AS n", "AS m").replace("BY n", "BY m"),
    "its HAVING": FIRST.replace("count(*) > 1", "count(*) > 2"),
    "its ORDER BY": FIRST.replace("ORDER BY n", "ORDER BY n DESC"),
    "its LIMIT": FIRST.replace("LIMIT 5", "LIMIT 6"),
}


@pytest.mark.parametrize("what", STREAM_CHANGES)
def test_a_changed_stream_is_refused(what: str) -> None:
    found = refused(app_of(STREAM, FIRST), app_of(STREAM_CHANGES[what], FIRST))
    assert found == f"stream 's' differs from the one that checkpoint /ck was made with: {what} changed"


def test_another_time_column_is_refused() -> None:
    columns = COLUMNS.replace(")", ", t2 TIMESTAMP)")
    before, after = (STREAM.replace(COLUMNS, columns).replace("WATERMARK ts", f"WATERMARK {t}") for t in ("ts", "t2"))
    found = refused(app_of(before, FIRST), app_of(after, FIRST))
    assert found.endswith("its time column changed")


@pytest.mark.parametrize("what", QUERY_CHANGES)
def test_a_changed_query_is_refused(what: str) -> None:
    found = refused(app_of(STREAM, FIRST), app_of(STREAM, QUERY_CHANGES[what]))
    assert found == f"query 'q' differs from the one that checkpoint /ck was made with: {what} changed"


def test_a_query_on_another_stream_or_with_another_sink_is_refused() -> None:
    other = STREAM.replace("STREAM s", "STREAM s2")
    moved = FIRST.replace("FROM s", "FROM s2")
    before = app_of(STREAM, other, FIRST, SECOND, SECOND.replace("QUERY r", "QUERY t").replace("FROM s", "FROM s2"))
    after = app_of(STREAM, other, moved, SECOND, SECOND.replace("QUERY r", "QUERY t").replace("FROM s", "FROM s2"))
    assert refused(before, after).endswith("what it reads changed")
    query = app_of(STREAM, FIRST).queries[0]
    changed = QuerySet(before.streams, (replace(query, sink="csv:/other"),))
    assert refused(QuerySet(before.streams, (query,)), changed).endswith("its sink changed")


def test_an_order_by_another_aggregate_is_told_as_such() -> None:
    after = app_of(STREAM, FIRST.replace("ORDER BY n", "ORDER BY max(b)"))
    assert refused(app_of(STREAM, FIRST), after).endswith("its ORDER BY changed")


def test_distinct_rows_instead_of_all_are_told_as_such() -> None:
    rows = "CREATE QUERY q AS SELECT a FROM s [RANGE '1 minute'];"
    found = refused(app_of(STREAM, rows), app_of(STREAM, rows.replace("SELECT", "SELECT DISTINCT")))
    assert found.endswith("its DISTINCT changed")


def test_a_stream_that_nobody_reads_any_more_is_refused() -> None:
    other = STREAM.replace("STREAM s", "STREAM s2"), SECOND.replace("FROM s", "FROM s2")
    found = refused(app_of(STREAM, FIRST, *other), app_of(*other))
    assert found == "checkpoint /ck reads stream 's', but no query of this app does"


def test_a_dropped_name_is_not_used_again() -> None:
    found = refused(app_of(STREAM, FIRST), app_of(STREAM, FIRST, SECOND), retired=frozenset({"r"}))
    assert found == "checkpoint /ck had a query 'r' that was dropped"


def test_results_go_where_they_went() -> None:
    app = app_of(STREAM, FIRST)
    assert refused(app, app, {"q": "/elsewhere"}) == "query 'q' of checkpoint /ck writes to /out/q, not /elsewhere"


def test_queries_and_streams_may_be_added_and_queries_dropped() -> None:
    both, one = app_of(STREAM, FIRST, SECOND), app_of(STREAM, FIRST)
    other = app_of(STREAM, FIRST, STREAM.replace("STREAM s", "STREAM s2"), SECOND.replace("FROM s", "FROM s2"))
    for before, after in ((one, both), (both, one), (both, both), (one, other)):
        check_changes(Path("/ck"), version_of(0, before), after, OUTPUTS)


# -- queries that promise a delay, and others, on one live stream

LIVE = STREAM.replace("parquet:x", "replay:parquet:x")
EXACT, EXACT_2 = SECOND, SECOND.replace("QUERY r", "QUERY r2")
PROMISED = SECOND.replace("QUERY r", "QUERY p").replace(";", " LIMIT DELAY TO '2 seconds';")
PROMISED_2 = PROMISED.replace("QUERY p", "QUERY p2")


def live_app(*queries: str) -> QuerySet:
    return with_owed(app_of(LIVE, *queries), arrives)


def test_queries_of_a_kind_come_and_go() -> None:
    for before, after in (
        ([EXACT], [EXACT, EXACT_2]),
        ([EXACT, EXACT_2], [EXACT]),
        ([PROMISED], [PROMISED, PROMISED_2]),
        ([PROMISED, PROMISED_2], [PROMISED_2]),
        ([EXACT, PROMISED], [EXACT, EXACT_2, PROMISED, PROMISED_2]),
        ([EXACT, EXACT_2, PROMISED, PROMISED_2], [EXACT_2, PROMISED]),
        ([EXACT, PROMISED], [EXACT_2, PROMISED_2]),
    ):
        check_changes(Path("/ck"), version_of(0, live_app(*before)), live_app(*after), OUTPUTS)


def test_a_kind_cannot_come() -> None:
    found = refused(live_app(EXACT), live_app(EXACT, PROMISED))
    told = "query 'p' promises a delay, and the queries of checkpoint /ck on the live stream 's' promise none"
    assert found == told == refused(live_app(EXACT), live_app(PROMISED))
    found = refused(live_app(PROMISED), live_app(PROMISED, EXACT))
    told = "query 'r' promises no delay, and the queries of checkpoint /ck on the live stream 's' promise one"
    assert found == told == refused(live_app(PROMISED), live_app(EXACT))


def test_a_kind_cannot_go() -> None:
    both = live_app(EXACT, PROMISED)
    told = "checkpoint /ck has a query on the live stream 's' that {}, but this app has none"
    assert refused(both, live_app(EXACT)) == told.format("promises a delay")
    assert refused(both, live_app(PROMISED)) == told.format("promises no delay")


def test_a_live_stream_that_nobody_reads_any_more_is_told_by_its_own_name() -> None:
    other = STREAM.replace("STREAM s", "STREAM s2"), FIRST.replace("FROM s", "FROM s2")
    found = refused(with_owed(app_of(LIVE, EXACT, PROMISED, *other), arrives), app_of(*other))
    assert found == "checkpoint /ck reads stream 's', but no query of this app does"


def test_streams_that_are_not_live_have_queries_of_both_kinds() -> None:
    before, after = (with_owed(app_of(STREAM, *queries), arrives) for queries in ([EXACT], [EXACT, PROMISED]))
    for one, other in ((before, after), (after, before)):
        check_changes(Path("/ck"), version_of(0, one), other, OUTPUTS)


# -- versions


def test_versions_follow_each_other(tmp_path: Path) -> None:
    both, one = app_of(STREAM, FIRST, SECOND), app_of(STREAM, FIRST)
    third = app_of(STREAM, FIRST, SECOND.replace("QUERY r", "QUERY t"))
    assert versions.newest(tmp_path) is None
    first = adopted(tmp_path, both, 0, OUTPUTS)
    assert (first.number, first.retired) == (0, frozenset())
    assert adopted(tmp_path, both, 0, OUTPUTS) == first  # nothing has changed
    second = adopted(tmp_path, one, 0, {"q": "/out/q"})
    assert (second.number, second.retired, second.outputs) == (1, frozenset({"r"}), OUTPUTS)
    assert adopted(tmp_path, third, 0, {"q": "/out/q", "t": "/out/t"}).number == 2
    assert versions.newest(tmp_path) == 2
    with pytest.raises(StateError, match="had a query 'r' that was dropped"):
        check_changes(tmp_path, versions.load(tmp_path, 2), both, OUTPUTS)
    assert versions.load(tmp_path, 0) == first


def test_other_tables_are_another_version(tmp_path: Path) -> None:
    """A replay of an old batch runs the plan that it was decided with."""
    app = app_of(STREAM, FIRST)
    assert adopted(tmp_path, app, 0, OUTPUTS).number == 0
    changed = adopted(tmp_path, app, 100_000, OUTPUTS)
    assert changed.number == 1
    assert changed.plans["s"].tables[0].buckets > 0
    assert adopted(tmp_path, app, 100_000, OUTPUTS) == changed


def test_a_version_is_written_once(tmp_path: Path) -> None:
    version = version_of(0, app_of(STREAM, FIRST))
    versions.store(tmp_path, version)
    with pytest.raises(StateError, match=r"version 0 of the app in .* was written by another run"):
        versions.store(tmp_path, version)


def test_a_missing_or_damaged_version_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"version 4 of the app is missing"):
        versions.load(tmp_path, 4)
    versions.store(tmp_path, version_of(5, app_of(STREAM, FIRST)))
    path = versions.path_of(tmp_path, 5)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StateError, match=r"version .*00000005\.json is damaged"):
            versions.load(tmp_path, 5)


def test_queries_come_after_those_whose_results_they_read() -> None:
    above = "CREATE QUERY top AS SELECT max(n) AS m FROM q [RANGE '1 hour'];"
    highest = "CREATE QUERY tip AS SELECT max(m) AS m FROM top [RANGE '1 day'];"
    found = app_of(STREAM, FIRST, above, SECOND, highest).levels
    assert [[query.name for query in level] for level in found] == [["q", "r"], ["top"], ["tip"]]


# -- what is decided about a batch, and where added queries begin


MINUTE = 60_000_000


def manifest(offset: Offset, greatest: int, watermark: int) -> Manifest:
    known = StreamState(offset.streams["s"].row, watermark, greatest, 5)
    return replace(first_manifest(), batch=offset.batch, offset=offset, streams={"s": known})


def test_an_offset_says_all_that_a_replay_must_know(tmp_path: Path) -> None:
    adopted(tmp_path, app_of(STREAM, FIRST), 0, {"q": "/out/q"})
    first = decide(tmp_path, Offset(), None, {"s": 100}, {"s": False})
    assert to_data(first) == {
        "n": 1, "plan": 0, "end": False, "origins": {}, "joined": {}, "tables": {},
        "streams": {"s": {"row": 100, "end": False, "wm": None, "max": None, "first": None}},
    }  # fmt: skip
    before = manifest(first, 10 * MINUTE + 1, 9 * MINUTE)
    assert decide(tmp_path, first, before, {"s": 200}, {"s": True}).end
    adopted(tmp_path, app_of(STREAM, FIRST, SECOND), 0, OUTPUTS)
    second = decide(tmp_path, first, before, {"s": 200}, {"s": False})
    assert (second.plan, second.origins) == (1, {"r": (10 * MINUTE + 1, 100)})
    assert second.streams["s"] == StreamOffset(200, False, 9 * MINUTE, 10 * MINUTE + 1, 5)
    third = decide(tmp_path, second, manifest(second, 20 * MINUTE, 19 * MINUTE), {"s": 300}, {"s": False})
    assert third.origins == second.origins  # where it was added, not where the stream is now
    epoch = epoch_of(third, "s", 250)
    assert (epoch.batch, epoch.watermark, epoch.greatest, epoch.first, epoch.row) == (
        2,
        19 * MINUTE,
        20 * MINUTE,
        5,
        250,
    )
    assert epoch.origins == {"r": (10 * MINUTE + 1, 100)}
    assert (third.stream("s").row, third.stream("other").row) == (300, 0)
    adopted(tmp_path, app_of(STREAM, FIRST), 0, OUTPUTS)
    assert decide(tmp_path, third, manifest(third, 21 * MINUTE, 0), {"s": 301}, {"s": False}).origins == {}


def test_one_task_looks_for_the_first_tuple_where_a_landmark_window_begins_there() -> None:
    landmark = "CREATE QUERY l AS SELECT count(*) AS n FROM s [WINDOW UNTIL NOW] EVERY 1 MINUTE;"
    unknown, known = (Offset(streams={"s": StreamOffset(first=first)}) for first in (None, 7))
    assert in_order(app_of(STREAM, landmark), unknown, "s")
    assert not in_order(app_of(STREAM, landmark), known, "s")
    assert not in_order(app_of(STREAM, FIRST), unknown, "s")


def test_an_added_querys_first_window_starts_after_all_that_was_seen() -> None:
    minute, rows = app_of(STREAM, FIRST).queries[0].window, app_of(
        STREAM, "CREATE QUERY w AS SELECT count(*) AS n FROM s [ROWS 10 SLIDE 4];"
    ).queries[0].window  # fmt: skip
    assert first_window(minute, None) is None
    assert first_window(minute, (None, 0)) is None
    assert first_window(minute, (10 * MINUTE, 77)) == 11
    assert first_window(minute, (10 * MINUTE - 1, 77)) == 10
    assert first_window(rows, (10 * MINUTE, 77)) == 20
    assert first_window(rows, (10 * MINUTE, 80)) == 20
    offset = Offset(3, streams={"s": StreamOffset(greatest=0, first=5)}, origins={"q": (10 * MINUTE, 77)})
    epoch = epoch_of(offset, "s", 0)
    assert cutoff(minute, epoch, "q") == 11 * MINUTE
    assert cutoff(minute, epoch, "other") is None
    assert cutoff(minute, replace(epoch, watermark=20 * MINUTE), "q") == 20 * MINUTE
    assert cutoff(rows, epoch, "q") == 80
    assert cutoff(rows, replace(epoch, watermark=20 * MINUTE), "other") is None
    landmark = replace(minute, range=None)
    assert cutoff(landmark, epoch, "other") == 0
    assert cutoff(landmark, replace(epoch, first=None), "other") is None
    assert cutoff(landmark, epoch, "q") == landmark_start(landmark, 5, (10 * MINUTE, 77)) == 11 * MINUTE
