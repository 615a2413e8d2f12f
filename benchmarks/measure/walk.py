"""How far a reader walks: how often the way of a record changes module inside `penstock`.

    python -m benchmarks.measure.walk

A profile hook watches every Python call and counts those from one module into another. Two ways are walked, both in
this process and without Spark:

| way | from | to |
| --- | --- | --- |
| chunk | the Arrow batch of a steady chunk, whose key layout is settled | the task's written segment |
| run | the first batch that is decided | published rows: tasks, merges, finish, stage, publish |

| figure | counts |
| --- | --- |
| changes | calls from one module into another |
| ways | the same, each pair of functions once: what a reader has to follow, however many queries there are |
| modules | modules that the way touches |
| rooms | changes from one package into another |
| callbacks | changes into a module that is waiting further up for a call of its own |

Modules and classes are found by their names at run time, so the script also walks through other commits: put it beside
their `benchmarks` and run it there.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = "penstock"
ROWS, CHUNK = 20_000, 4_000
STEADY = 3  # chunks before the one that is watched
GENERATED = "<string>"  # where Python says that code of dataclasses stands: no one reads it
TABLES = 1 << 16  # bytes of the tables before the leaves
QUERIES = """
CREATE STREAM flows FROM 'parquet:{file}' WATERMARK ts DELAY '1 second';
CREATE QUERY pairs AS
  SELECT src, dst, count(*) AS n, sum(bytes) AS bytes FROM flows [WINDOW '1 second'] GROUP BY src, dst;
CREATE QUERY ports AS
  SELECT dport, max(bytes) AS most FROM flows [WINDOW '2 seconds'] WHERE proto = 6 GROUP BY dport;
CREATE QUERY sizes AS
  SELECT bytes % 100 AS size, avg(packets) AS packets FROM flows [RANGE '20 seconds' SLIDE '1 second']
  GROUP BY bytes % 100;
"""


class Walk:
    """Counts calls between modules while it is entered as a context."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.callbacks: Counter[tuple[str, str]] = Counter()
        self.ways: set[tuple[str, str, str, str]] = set()
        self.modules: set[str] = set()
        self._stack: list[tuple[str, str]] = []

    def __enter__(self) -> Walk:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not module.startswith(PACKAGE + "."):
            return
        if frame.f_code.co_filename == GENERATED:
            return
        if event == "return":
            if self._stack:
                self._stack.pop()
            return
        here = module.removeprefix(PACKAGE + "."), frame.f_code.co_qualname
        self.modules.add(here[0])
        if self._stack and self._stack[-1][0] != here[0]:
            pair = self._stack[-1][0], here[0]
            self.pairs[pair] += 1
            self.ways.add((*self._stack[-1], *here))
            if any(waiting == here[0] for waiting, _ in self._stack):
                self.callbacks[pair] += 1
        self._stack.append(here)

    def figures(self) -> dict[str, Any]:
        return {
            "changes": self.pairs.total(),
            "ways": len(self.ways),
            "modules": len(self.modules),
            "rooms": sum(count for (one, other), count in self.pairs.items() if _room(one) != _room(other)),
            "callbacks": self.callbacks.total(),
            "pairs": {f"{one} -> {other}": count for (one, other), count in self.pairs.most_common()},
            "callback_pairs": {f"{one} -> {other}": count for (one, other), count in self.callbacks.most_common()},
        }


def _room(module: str) -> str:
    """The package that a module stands in."""
    return module.rpartition(".")[0]


def walk_chunk(folder: Path, text: str) -> Walk:
    """The way of one steady chunk to the segment of its task."""
    import penstock.runtime.task.task as tasks
    from penstock.runtime.epoch import Epoch
    from penstock.runtime.settings import TaskSettings
    from penstock.sharing.plan import unshared_plan
    from penstock.sources.base import Split
    from penstock.state.segments.write import SegmentWriter

    app, sources = _opened(text)
    plan, settings = unshared_plan(app, "flows", TABLES), TaskSettings(chunk_rows=CHUNK)
    names = [field.name for field in plan.stream.fields]
    start: Any = 0  # positions had no type of their own at first
    walks, whole = [], Split(start, start + ROWS)
    for number in range(2):  # the first task of a worker has no figures of tasks before
        writer = SegmentWriter(folder / f"{number}.seg", settings.slots)
        task = _with_method(tasks, "look_back")(plan, settings, Epoch(0), writer)
        batches: Iterator[Any] = sources["flows"].read(whole, names, CHUNK)
        for _ in range(STEADY):
            task.take(next(batches))
        steady = next(batches)
        with Walk() as walk:
            task.take(steady)
            task.end()
            tasks.task_report(task)
        walks.append(walk)
    return walks[-1]


def walk_run(folder: Path, text: str) -> Walk:
    """The way of a whole run, driver and all, to its published rows."""
    tests = Path(__file__).parents[2] / "tests"
    sys.path[:0] = [str(tests), str(tests / "property")]
    import pytest
    from in_process import Engine  # type: ignore[import-not-found,unused-ignore]

    from penstock.runtime.planning.replan import Planner
    from penstock.sharing.options import NONE, Planning
    from penstock.testing.apps.generators import Settings

    app, sources = _opened(text)
    settings = Settings(ROWS // 2, 1, TABLES, 1 << 28, CHUNK, 1024, 4)
    with pytest.MonkeyPatch.context() as patch:
        asked = inspect.signature(Engine).parameters  # engines of earlier commits are patched to do without Spark
        patched = {"patch": patch} if "patch" in asked else {}
        engine = Engine(folder / "run", app, sources, settings, planner=Planner(Planning(NONE)), **patched)
        with Walk() as walk:
            engine.finish()
        published = engine.rows("pairs")
        assert published is not None
        assert published.num_rows
    return walk


def _with_method(module: Any, method: str) -> Any:
    """The class of a module that has this method."""
    kinds = (kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__)
    return next(kind for kind in kinds if hasattr(kind, method))


def _opened(text: str) -> tuple[Any, dict[str, Any]]:
    """The app with its sources by stream."""
    from penstock.logical.resolve.app import resolve_app
    from penstock.sources.base import fields
    from penstock.sources.registry import open_source

    found: dict[str, Any] = {}

    def schema(uri: str, options: Any) -> Any:
        found["flows"] = open_source(uri, options)
        return fields(found["flows"].schema())

    return resolve_app(text, "walk.sql", schema), found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.measure.walk", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--pairs", type=int, default=40, help="pairs of modules to show")
    asked = parser.parse_args(arguments)
    walked = walked_ways()
    if asked.json:
        print(json.dumps(walked, indent=2))
        return
    for name, told in walked.items():
        figures = ", ".join(f"{told[one]} {one}" for one in ("changes", "ways", "modules", "rooms", "callbacks"))
        print(f"{name}: {figures}")
        for kind in ("pairs", "callback_pairs"):
            for pair, count in list(told[kind].items())[: asked.pairs]:
                print(f"  {count:6}  {pair}{'  (callback)' if kind == 'callback_pairs' else ''}")


def walked_ways() -> dict[str, dict[str, Any]]:
    """Figures of both ways."""
    ways: dict[str, Callable[[Path, str], Walk]] = {"chunk": walk_chunk, "run": walk_run}
    with tempfile.TemporaryDirectory() as place:
        text = app_text(Path(place))
        return {name: way(Path(place), text).figures() for name, way in ways.items()}


def app_text(folder: Path) -> str:
    """The text of a small app, and the records that it reads in a file of this folder."""
    from penstock.sources.generate.source import open_generate
    from penstock.sources.parquet.write import write_parquet

    file = folder / "flows.parquet"
    write_parquet(open_generate("flows", {"rows": str(ROWS), "rate": "1000", "seed": "7"}), file)
    return QUERIES.format(file=file)


if __name__ == "__main__":
    main()
