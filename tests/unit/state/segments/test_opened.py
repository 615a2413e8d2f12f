"""Segments opened once: for every query, from batch to batch, and no longer than they live."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import StateError
from penstock.relations.component import component_of
from penstock.runtime.merge.windows import TaskSegments
from penstock.state.protocol import SegmentRef
from penstock.state.segments import read as segments_module
from penstock.state.segments.groups import Groups
from penstock.state.segments.opened import Segments
from penstock.state.segments.write import SegmentWriter


def segment(folder: Path, name: str, panes: dict[str, int]) -> SegmentRef:
    """A segment with two groups of each query in the pane that is given."""
    writer = SegmentWriter(folder / name, 4)
    two = np.arange(1, 3)
    for query, pane in panes.items():
        writer.add(query, Groups(np.full(2, pane), {component_of("value:x"): two}, {}, two, {}))
    writer.end_run({})
    return writer.close()


def places(segments: Segments, query: str, below: int | None = None) -> list[tuple[str, list[int]]]:
    return [(block.segment.path.name, block.panes.tolist()) for block in segments.blocks(query, below=below)]


def test_blocks_of_a_query_in_order(tmp_path: Path) -> None:
    first, second = segment(tmp_path, "1", {"a": 3, "b": 9}), segment(tmp_path, "2", {"a": 7})
    segments = Segments(tmp_path, [first])
    segments.add([second])
    assert places(segments, "a") == [("1", [3]), ("2", [7])]
    assert places(segments, "b") == [("1", [9])]
    assert places(segments, "c") == []
    assert places(segments, "a", 7) == [("1", [3])]
    assert places(segments.only([second]), "a") == [("2", [7])]


def test_each_is_opened_once_while_it_lives(tmp_path: Path) -> None:
    first, second = segment(tmp_path, "1", {"a": 3, "b": 9}), segment(tmp_path, "2", {"a": 7})
    segments = Segments(tmp_path, [first, second])
    assert places(segments, "a") == [("1", [3]), ("2", [7])]
    opened = segments.bytes_read
    assert opened > 0
    segments.keep([first])
    (tmp_path / "1").unlink()
    assert places(segments, "b") == places(segments.only([first]), "b") == [("1", [9])]
    assert 0 < segments.bytes_read < opened  # the second is forgotten
    segments.keep([])
    segments.keep([first])
    with pytest.raises(StateError, match="cannot be read"):
        places(segments, "a")


def test_a_task_holds_few_files_open_and_none_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_module, "HELD", 2)
    references = [segment(tmp_path, str(number), {"a": number}) for number in range(4)]
    with TaskSegments(tmp_path, references) as segments:
        for _ in range(3):
            blocks = list(segments.blocks("a"))
            assert [sorted(block.column("count", 0, 2).tolist()) for block in blocks] == [[1, 2]] * 4
            assert held(tmp_path) == ["2", "3"]
    assert held(tmp_path) == []


def held(folder: Path) -> list[str]:
    """Files of the folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            path = Path(os.readlink(link))
            if path.parent == folder:
                found.append(path.name)
    return sorted(found)
