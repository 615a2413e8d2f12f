"""Random apps through the whole engine but Spark: batches, watermarks, late tuples, compaction, queries on queries,
queries that are added to a running app or dropped from it. Every query and every account, of windows too, must
equal the oracle.

Compaction is made to happen all the time: a few live segments are already too many here.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from in_process import Engine, bearable

from penstock.errors import RunError
from penstock.logical.query import Query, QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.runtime.batch import compaction
from penstock.runtime.planning.replan import Planner
from penstock.sharing.options import Planning
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.state import manifest as manifests
from penstock.state import rings
from penstock.state.manifest import Manifest
from penstock.state.protocol import Volume
from penstock.testing.apps.generators import random_case
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows, assert_same_windows
from penstock.testing.oracle.expected import expect
from support.amounts import quick_and
from support.windowed_alike import windowed_alike

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
SLOW = 400


def some_of(app: QuerySet, rng: random.Random) -> QuerySet:
    """The app without some of its queries and all that read them; all of it where none would be left."""
    kept: dict[str, Query] = {}
    for query in app.queries:
        reads_kept = query.stream in kept or any(stream.name == query.stream for stream in app.streams)
        if reads_kept and (query.hidden or rng.random() < 0.6):
            kept[query.name] = query
    while unread := [q for q in kept.values() if q.hidden and all(other.stream != q.name for other in kept.values())]:
        for query in unread:
            del kept[query.name]
    return QuerySet(app.streams, tuple(kept.values())) if kept else app


def check(
    seed: int, folder: Path, patch: pytest.MonkeyPatch, planning: Planning | None = None, alike: bool = False
) -> Engine:
    """`planning`: plans of the engine's own planner, instead of random ones; `alike`: with windows that can be made of
    each other's panes."""
    rng = random.Random(seed)
    patch.setattr(compaction, "MOST", rng.choice([1, 2, 4, 12]))
    case = random_case(seed)
    text = case.write(folder / "in", "arrow" if seed % 3 == 0 else "parquet")
    app = resolve_app(text, "random.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    if alike:
        app = windowed_alike(app, case.data, random.Random(seed))
    sources = {stream.name: open_source(stream.source, dict(stream.options)) for stream in app.streams}
    settings = bearable(case.settings, case.data.num_rows)
    context = f"seed {seed}: {settings}, {planning}\n{text}"
    # Some apps get, and some lose, a few queries while they run.
    some, turn = some_of(app, rng), rng.random()
    first, then = (some, app) if turn < 0.25 else (app, some) if turn < 0.4 else (app, app)
    engine = Engine(folder, first, sources, settings, None if planning is None else Planner(planning))
    since: dict[str, tuple[int | None, int, int]] = {}
    try:
        if first is not then:
            for _ in range(rng.randint(1, 4)):
                engine.step()
            if engine.offset.end:
                then = first
            else:
                known = engine.driver.manifest.streams[app.streams[0].name]
                added = {q.name for q in then.queries} - {q.name for q in first.queries}
                since = dict.fromkeys(added, (known.greatest, known.row, engine.batch))
                engine.amend(then)
        engine.finish()
    except Exception as error:
        error.add_note(context)
        raise
    summary = engine.summary()
    batches = [batch["rows"] for batch in summary["batches"]]
    assert sum(batches) == case.data.num_rows, context
    expected = expect(then, case.data, batches, since=since)
    assert_account_closes(summary)
    for name, rows in expected.rows.items():
        place = f"{context}\nquery {name}"
        actual = engine.rows(name)
        assert_same_rows(rows.slice(0, 0) if actual is None else actual, rows, place)
        assert summary["queries"][name]["rows"] == rows.num_rows, place
        assert_same_account(summary["queries"][name]["accounting"], expected.accounts[name], place)
        assert_same_windows(engine.window_account(name), expected.windows[name], place)
        check_sums(then, name, summary, engine.window_account(name), place)
    if first is then:
        assert_same_account(summary["accounting"], expected.stream, f"{context}\nstream")
    assert not list((engine.checkpoint / "segments").iterdir()), f"{context}\nsegments are left"
    check_bytes(engine, summary, context)
    return engine


def check_bytes(engine: Engine, summary: dict[str, Any], context: str) -> None:
    """Bytes of batches add up to those of the run; results are what the files have."""
    told, batches = summary["state"], [batch["bytes"] for batch in summary["batches"]]
    for name in Volume.__dataclass_fields__:
        assert told[name] == sum(batch[name] for batch in batches), f"{context}\n{name}"
    assert told["bytes"] == batches[-1]["kept"] == 0, context
    assert told["results"] == sum(path.stat().st_size for path in engine.output.rglob("*.parquet")), context
    assert told["written"] > 0, context
    windows = sum(batch["windows"] for batch in summary["batches"])
    assert (told["read"] > 0) >= (windows > 0), context
    held = 0  # after a batch there is no more than before it and what it wrote
    for batch in batches:
        assert batch["kept"] <= held + batch["written"] + batch["compacted"], context
        held = batch["kept"]


def check_sums(app: QuerySet, name: str, summary: dict[str, Any], windows: list[dict[str, int]], place: str) -> None:
    """What the account of a query says of all its windows together."""
    told, window = summary["queries"][name], next(query.window for query in app.queries if query.name == name)
    assert told["windows"] == len(windows), place
    assert told["last_windows"] == windows[-10:], place
    assert told["rows"] == sum(one["rows"] for one in windows), place
    exact = sum(one["exact"] for one in windows)
    if window.range is not None and window.range <= window.slide:  # no tuple is in two of them
        assert told["accounting"]["exact"] == exact, place
    else:
        assert told["accounting"]["exact"] <= exact, place


@pytest.mark.parametrize("start", quick_and([0, 30], [10, 20]))
def test_runs_match_the_oracle(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(700 + start, 710 + start):
        check(seed, tmp_path / str(seed), monkeypatch)


@pytest.mark.parametrize("seed", [701, 704])
def test_a_batch_done_twice_counts_its_windows_once(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch fails once, after the accounts of its windows were written and before its manifest."""
    expected = accounts(ended(seed, tmp_path / "undisturbed", monkeypatch))
    put, failed, capacity = manifests.put, set(), 4

    def stumble(checkpoint: Path, manifest: Manifest) -> None:
        if manifest.batch not in failed:
            failed.add(manifest.batch)
            raise OSError("the manifest cannot be written")
        put(checkpoint, manifest)

    monkeypatch.setattr(manifests, "put", stumble)
    stumbled = ended(seed, tmp_path / "stumbled", monkeypatch)
    assert len(failed) == stumbled.batch > 1
    assert accounts(stumbled) == expected
    assert max(map(len, expected.values())) > capacity
    failed.clear()
    monkeypatch.setattr(rings, "CAPACITY", capacity)
    bounded = ended(seed, tmp_path / "bounded", monkeypatch)
    assert accounts(bounded) == {name: windows[-capacity:] for name, windows in expected.items()}


def accounts(engine: Engine) -> dict[str, list[dict[str, int]]]:
    return {name: engine.window_account(name) for name in engine.driver.sinks}


def ended(seed: int, folder: Path, patch: pytest.MonkeyPatch) -> Engine:
    """A run to the end; a batch that fails is tried again."""
    case = random_case(seed)
    text = case.write(folder / "in")
    app = resolve_app(text, "random.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    sources = {stream.name: open_source(stream.source, dict(stream.options)) for stream in app.streams}
    engine = Engine(folder, app, sources, bearable(case.settings, case.data.num_rows))
    while True:
        try:
            if not engine.step():
                break
        except RunError:
            engine.again()
    engine.finish()
    return engine


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, SLOW, 20))
def test_many_runs_match_the_oracle(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(SEED + start, SEED + start + 20):
        check(seed, tmp_path / str(seed), monkeypatch)
