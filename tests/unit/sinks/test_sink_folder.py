"""Whose results a folder holds, and what is in it after a crash: the rules shared by Parquet, CSV and JSON."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ConfigError, RunError
from penstock.sinks.base import Owner, Part
from penstock.sinks.csv import CsvSink
from penstock.sinks.folder import STAGED, FolderSink
from penstock.sinks.json import JsonSink
from penstock.sinks.parquet import ParquetSink
from penstock.state import lease

ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64()), "s": ["a", None, "b"]})
KINDS = (ParquetSink, CsvSink, JsonSink)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.suffix)
def one(request: pytest.FixtureRequest, tmp_path: Path) -> FolderSink:
    return request.param("q", str(tmp_path / "out"), ROWS.schema)


def owner(folder: Path, name: str) -> Owner:
    return Owner(name, str(folder / name))


def staged(sink: FolderSink, batch: int = 0, parts: int = 1) -> list[Part]:
    found = [sink.stage(ROWS, batch, part, "attempt") for part in range(parts)]
    return [(aside, final) for aside, final in found]


def files(sink: FolderSink) -> list[str]:
    return sorted(path.name for path in Path(sink.folder).glob(f"*{sink.suffix}"))


def aside(sink: FolderSink) -> list[str]:
    return sorted(path.name for path in (Path(sink.folder) / STAGED).iterdir())


def test_a_batch_is_seen_when_published_and_once(one: FolderSink, tmp_path: Path) -> None:
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    parts = staged(one, batch=7, parts=2)
    assert files(one) == []
    assert not any(Path(name).suffix for name, _ in parts)
    one.publish(7, parts)
    one.publish(7, parts)  # doing it again does nothing
    one.publish(8, [])
    assert files(one) == [f"q-00000007-0000{one.suffix}", f"q-00000007-0001{one.suffix}"]
    assert aside(one) == []
    with pytest.raises(RunError, match="are gone"):
        one.publish(7, [(parts[0][0], parts[0][1] + "-lost")])


def test_a_crash_between_two_renames_is_rolled_forward(one: FolderSink, tmp_path: Path) -> None:
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    parts = staged(one, parts=3)
    os.replace(*parts[0])  # and killed here
    again = pickle.loads(pickle.dumps(one))
    again.publish(0, parts)
    assert len(files(one)) == 3
    again.prepare(owner(tmp_path, "a"), overwrite=False)
    assert len(files(one)) == 3


def test_other_attempts_go_with_the_batch_and_later_batches_stay(one: FolderSink, tmp_path: Path) -> None:
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    parts = staged(one, batch=3)
    one.stage(ROWS, 3, 0, "killed")
    one.stage(ROWS, 2, 9, "late")
    one.stage(ROWS, 4, 0, "next")
    one.publish(3, parts)
    assert aside(one) == ["q-00000004-0000-next"]


def test_names_that_readers_overlook_are_not_used(tmp_path: Path) -> None:
    for query in ("_q", "__"):
        sink = ParquetSink(query, str(tmp_path / query), ROWS.schema)
        sink.prepare(owner(tmp_path, "a"), overwrite=False)
        sink.publish(0, staged(sink))
        assert not files(sink)[0].startswith("_")


def test_another_run_is_refused_until_it_overwrites(one: FolderSink, tmp_path: Path) -> None:
    first, second = owner(tmp_path, "a"), owner(tmp_path, "b")
    one.prepare(first, overwrite=False)
    one.publish(0, staged(one))
    one.prepare(first, overwrite=False)
    with pytest.raises(ConfigError, match="already holds results"):
        one.prepare(second, overwrite=False)
    one.check(first)
    one.prepare(second, overwrite=True)
    assert files(one) == []
    with pytest.raises(RunError, match="taken over"):
        one.check(first)


def test_results_in_another_format_are_not_mixed_either(tmp_path: Path) -> None:
    old, new = (kind("q", str(tmp_path / "out"), ROWS.schema) for kind in (ParquetSink, CsvSink))
    old.prepare(owner(tmp_path, "a"), overwrite=False)
    old.publish(0, staged(old))
    with pytest.raises(ConfigError, match="already holds results"):
        new.prepare(owner(tmp_path, "b"), overwrite=False)
    lines = JsonSink("q", str(tmp_path / "out"), ROWS.schema)
    with pytest.raises(ConfigError, match="holds results in another format"):
        lines.prepare(owner(tmp_path, "b"), overwrite=True)
    new.prepare(owner(tmp_path, "b"), overwrite=True)
    assert files(old) == []


def test_staged_results_of_another_run_are_not_removed(one: FolderSink, tmp_path: Path) -> None:
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    parts = staged(one)  # committed, and killed before it was published
    with pytest.raises(ConfigError, match="already holds results"):
        one.prepare(owner(tmp_path, "b"), overwrite=False)
    one.publish(0, parts)


def test_a_live_run_is_never_overwritten(one: FolderSink, tmp_path: Path) -> None:
    first = owner(tmp_path, "a")
    held = lease.acquire(Path(first.checkpoint), [os.getpid()])
    one.prepare(first, overwrite=False)
    with pytest.raises(ConfigError, match="another run is writing"):
        one.prepare(owner(tmp_path, "b"), overwrite=True)
    held.release()
    one.prepare(owner(tmp_path, "b"), overwrite=True)


def test_files_of_strangers_stay(one: FolderSink, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    pq.write_table(ROWS, folder / f"input{one.suffix}")
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="not results of penstock"):
            one.prepare(owner(tmp_path, "a"), overwrite=overwrite)
    assert (folder / f"input{one.suffix}").exists()
    assert not (folder / one.mark).exists()


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for sink in (kind("q", str(tmp_path / "file" / "out"), ROWS.schema) for kind in KINDS):
        with pytest.raises(ConfigError, match="cannot be used: Not a directory"):
            sink.prepare(owner(tmp_path, "a"), overwrite=False)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[None]:
    """Root may write anywhere: be nobody for a while."""
    mine = os.geteuid()
    tmp_path.chmod(0o500)
    if mine == 0:
        os.seteuid(65_534)
    yield
    os.seteuid(mine)
    tmp_path.chmod(0o700)


@pytest.mark.usefixtures("read_only")
def test_a_folder_that_is_not_writable_is_refused(one: FolderSink, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used: Permission denied"):
        one.prepare(owner(tmp_path, "a"), overwrite=False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_leaves_nothing_that_looks_whole(one: FolderSink, tmp_path: Path) -> None:
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    (Path(one.folder) / STAGED / "q-00000000-0000-full").symlink_to("/dev/full")
    with pytest.raises(RunError, match=r"cannot write results to .*: .*No space left on device"):
        one.stage(ROWS, 0, 0, "full")
    assert aside(one) == []
    assert files(one) == []


def test_a_folder_that_is_gone_at_publish_says_so(one: FolderSink, tmp_path: Path) -> None:
    one.prepare(owner(tmp_path, "a"), overwrite=False)
    parts = staged(one)
    os.rename(one.folder, tmp_path / "elsewhere")
    with pytest.raises(RunError, match="are gone"):
        one.publish(0, parts)
