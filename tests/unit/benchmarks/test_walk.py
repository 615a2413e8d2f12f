"""The way of a chunk: it goes down through the rooms of a task, and nothing calls back."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import walk


def test_nothing_calls_back_on_the_way_of_a_chunk(tmp_path: Path) -> None:
    walked = walk.walk_chunk(tmp_path, walk.app_text(tmp_path))
    figures = walked.figures()
    assert figures["callback_pairs"] == {}
    assert figures["changes"] > figures["ways"] > figures["modules"] > 20
    assert {"runtime.task.task", "runtime.tables.leaf", "state.segments.write"} <= walked.modules


def test_tables_never_call_into_the_task(tmp_path: Path) -> None:
    walked = walk.walk_chunk(tmp_path, walk.app_text(tmp_path))
    assert not [pair for pair in walked.pairs if pair[0].startswith("runtime.tables") and "runtime.task" in pair[1]]


def test_a_whole_run_is_walked_to_its_published_rows(tmp_path: Path) -> None:
    walked = walk.walk_run(tmp_path, walk.app_text(tmp_path))
    assert {
        "runtime.task.task",
        "runtime.merge.results.finish",
        "runtime.batch.driver",
        "sinks.folder",
    } <= walked.modules
