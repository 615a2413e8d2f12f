"""Garbage collection keeps what a replay may need, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.state import garbage
from penstock.state import manifest as manifests
from penstock.state.manifest import first_manifest
from penstock.state.protocol import Offset, SegmentRef


def commit(checkpoint: Path, batch: int, named: list[str], ended: bool = False) -> None:
    segments = tuple(SegmentRef(name, 1, 0, {}) for name in named)
    manifests.put(checkpoint, replace(first_manifest(), batch=batch, offset=Offset(), segments=segments, ended=ended))


def segments(checkpoint: Path, *names: str) -> None:
    (checkpoint / garbage.SEGMENTS).mkdir(exist_ok=True)
    for name in names:
        (checkpoint / garbage.SEGMENTS / name).write_bytes(b"x")


def left(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in (checkpoint / garbage.SEGMENTS).iterdir())


def names(*batches: int) -> list[str]:
    return [garbage.segment_name(batch, "0000", "aa") for batch in batches]


def test_names_sort_by_batch_and_task() -> None:
    assert garbage.segment_name(7, "0003", "0f") == "00000007-0003-0f.seg"


def test_keeps_what_the_last_two_manifests_name(tmp_path: Path) -> None:
    segments(tmp_path, *names(0, 1, 2, 3, 4))
    for batch, live in [(0, [0]), (1, [0, 1]), (2, [1, 2]), (3, [3])]:
        commit(tmp_path, batch, names(*live))
    assert garbage.collect(tmp_path, 3) == 3  # segment 0, manifests 0 and 1
    assert left(tmp_path) == names(1, 2, 3, 4)
    assert manifests.batches(tmp_path) == [2, 3]
    assert garbage.collect(tmp_path, 3) == 0


def test_leaves_later_batches_alone(tmp_path: Path) -> None:
    """They belong to tasks that may be running, or to a batch that was committed but not by Spark."""
    segments(tmp_path, *names(0, 1, 2))
    commit(tmp_path, 0, [])
    commit(tmp_path, 1, names(1))
    garbage.collect(tmp_path, 0)
    assert left(tmp_path) == names(1, 2)
    assert manifests.batches(tmp_path) == [0, 1]


def test_deletes_what_killed_attempts_left(tmp_path: Path) -> None:
    segments(tmp_path, *names(0, 1), garbage.segment_name(1, "0000", "bb"), garbage.segment_name(1, "0001", "cc"))
    commit(tmp_path, 0, names(0))
    commit(tmp_path, 1, [*names(0, 1), garbage.segment_name(1, "0001", "cc")])
    (tmp_path / manifests.FOLDER / ".00000002.json.1234abcd.tmp").write_bytes(b"half a mani")
    assert garbage.collect(tmp_path, 1) == 2
    assert left(tmp_path) == [*names(0, 1), garbage.segment_name(1, "0001", "cc")]
    assert sorted(path.name for path in (tmp_path / manifests.FOLDER).iterdir()) == ["00000000.json", "00000001.json"]


def test_after_the_end_nothing_is_needed(tmp_path: Path) -> None:
    segments(tmp_path, *names(0, 1, 2))
    commit(tmp_path, 1, names(0, 1))
    commit(tmp_path, 2, [], ended=True)
    garbage.collect(tmp_path, 2)
    assert left(tmp_path) == []
    assert manifests.newest(tmp_path) is not None


def test_the_first_batch(tmp_path: Path) -> None:
    segments(tmp_path, *names(0), garbage.segment_name(0, "0000", "bb"))
    commit(tmp_path, 0, names(0))
    assert garbage.collect(tmp_path, 0) == 1
    assert left(tmp_path) == names(0)


def test_a_run_that_was_overtaken_deletes_nothing(tmp_path: Path) -> None:
    """Its manifest is gone because a later owner went on; that owner's manifests name what lives."""
    segments(tmp_path, *names(0, 5, 9))
    commit(tmp_path, 8, names(0, 5))
    commit(tmp_path, 9, names(0, 5, 9))
    assert garbage.collect(tmp_path, 5) == 0
    assert left(tmp_path) == names(0, 5, 9)


def test_files_of_others_stay(tmp_path: Path) -> None:
    segments(tmp_path, *names(0), "notes.seg", "README")
    commit(tmp_path, 0, [])
    garbage.collect(tmp_path, 0)
    assert left(tmp_path) == ["README", "notes.seg"]


def test_a_damaged_manifest_deletes_nothing(tmp_path: Path) -> None:
    segments(tmp_path, *names(0, 1))
    commit(tmp_path, 0, names(0))
    commit(tmp_path, 1, names(1))
    manifests.path_of(tmp_path, 0).write_bytes(b"{}")
    with pytest.raises(StateError, match=r"00000000\.json is damaged"):
        garbage.collect(tmp_path, 1)
    assert left(tmp_path) == names(0, 1)


def planned(checkpoint: Path, plans: list[int], *, ended: bool = False) -> None:
    """Manifests of batches that ran these versions, and files of all versions up to the newest and one more."""
    for batch, plan in enumerate(plans):
        last = ended and batch == len(plans) - 1
        manifests.put(checkpoint, replace(first_manifest(), batch=batch, offset=Offset(plan=plan), ended=last))
    (checkpoint / garbage.VERSIONS).mkdir()
    for number in range(max(plans) + 2):
        (checkpoint / garbage.VERSIONS / f"{number:08d}.json").write_text("{}")


def versions_left(checkpoint: Path) -> list[int]:
    return sorted(int(path.stem) for path in (checkpoint / garbage.VERSIONS).iterdir())


def test_versions_that_no_replay_runs_go(tmp_path: Path) -> None:
    """A replay may start from the manifest before the last; a version that no batch has taken up yet stays."""
    planned(tmp_path, [0, 1, 1, 3, 4])
    garbage.collect(tmp_path, 4)
    assert versions_left(tmp_path) == [3, 4, 5]
    assert garbage.collect(tmp_path, 4) == 0


def test_versions_of_the_batch_before_stay(tmp_path: Path) -> None:
    planned(tmp_path, [0, 2])
    garbage.collect(tmp_path, 1)
    assert versions_left(tmp_path) == [0, 1, 2, 3]
    for batch in (2, 3):
        manifests.put(tmp_path, replace(first_manifest(), batch=batch, offset=Offset(plan=2)))
    garbage.collect(tmp_path, 3)
    assert versions_left(tmp_path) == [2, 3]


def test_after_the_end_only_the_last_version_is_needed(tmp_path: Path) -> None:
    planned(tmp_path, [0, 1, 5], ended=True)
    garbage.collect(tmp_path, 2)
    assert versions_left(tmp_path) == [5, 6]


def test_what_killed_tasks_left_of_samples_goes(tmp_path: Path) -> None:
    commit(tmp_path, 0, [])
    (tmp_path / garbage.SAMPLES).mkdir()
    for name in ("s.sample", ".s.sample.0a1b2c3d"):
        (tmp_path / garbage.SAMPLES / name).write_bytes(b"x")
    garbage.collect(tmp_path, 0)
    assert [path.name for path in (tmp_path / garbage.SAMPLES).iterdir()] == ["s.sample"]
