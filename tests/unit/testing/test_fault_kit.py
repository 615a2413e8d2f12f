"""The fault kit itself: orders at named points, damage, clocks, disks; no Spark."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import clock as wall
from penstock import faults as points
from penstock.testing import faults
from penstock.testing.faults.damage import KINDS, damaged

LAUNCH = faults.Launch(Path("app.sql"), Path("ckpt"), Path("out"), 100)
VISITOR = """
import sys
from penstock.faults import reach
for visit in range(1, 6):
    try:
        reach("source.read")
        print(visit, "passed", flush=True)
    except OSError as error:
        print(visit, error.errno, flush=True)
"""


def visits(**environment: str) -> tuple[int, list[str]]:
    """What five visits of a point in a process of their own come to."""
    done = subprocess.run(
        [sys.executable, "-c", VISITOR], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return done.returncode, [line.split(" ")[1] for line in done.stdout.splitlines()]


def test_a_point_kills_raises_or_stalls(tmp_path: Path) -> None:
    assert visits() == (0, ["passed"] * 5)
    assert visits(PENSTOCK_FAULT="source.read:3") == (-9, ["passed"] * 2)
    assert visits(PENSTOCK_FAULT="source.read:2:raise=EIO") == (0, ["passed", str(errno.EIO), *["passed"] * 3])
    assert visits(PENSTOCK_FAULT="source.read:4+:raise=ENOSPC") == (0, ["passed"] * 3 + [str(errno.ENOSPC)] * 2)
    assert visits(PENSTOCK_FAULT="source.read:1+:stall=0.01") == (0, ["passed"] * 5)
    assert visits(PENSTOCK_FAULT="sink.stage:1:raise=EIO") == (0, ["passed"] * 5)
    once = {"PENSTOCK_FAULT": "source.read:1+:raise=EIO", "PENSTOCK_FAULT_ONCE": str(tmp_path / "fired")}
    assert visits(**once) == (0, [str(errno.EIO), *["passed"] * 4])
    assert visits(**once) == (0, ["passed"] * 5)


@pytest.mark.parametrize(
    "text", ["nowhere:1", "source.read:x", "source.read:1:raise=EWHAT", "source.read:1:sing", "source.read:1:stall=x"]
)
def test_an_order_that_cannot_be_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="PENSTOCK_FAULT"):
        points.parse_order(text)


def test_faults_are_orders() -> None:
    for point in points.POINTS:
        assert points.parse_order(faults.Fault(point, 2).text()) == points.FaultOrder(point, 2)
    made = [faults.source_fails(), faults.source_fails(always=True), faults.sink_fails("publish", "ENOSPC", 3)]
    made.append(faults.stall("source.read", 1.5))
    orders = [points.parse_order(fault.text()) for fault in made]
    assert orders == [
        points.FaultOrder("source.read", 1, False, "raise", "EIO"),
        points.FaultOrder("source.read", 1, True, "raise", "EIO"),
        points.FaultOrder("sink.publish", 3, False, "raise", "ENOSPC"),
        points.FaultOrder("source.read", 1, False, "stall", "1.5"),
    ]
    assert [fault.once for fault in made] == [True, False, True, True]
    with pytest.raises(ValueError, match="a sink fails at"):
        faults.sink_fails("nowhere")


def test_clocks_are_wrong_as_asked() -> None:
    assert wall.parse_skew("").at(100) == 0
    assert wall.parse_skew("-86400").at(5) == -86400
    late = wall.parse_skew(faults.jump(+3600, 20))
    assert (late.at(19.9), late.at(20)) == (0, 3600)
    assert wall.parse_skew(faults.drift(-0.5)).at(10) == -5
    launch = faults.skewed(LAUNCH, -60)
    assert wall.parse_skew(dict(launch.environment)["PENSTOCK_CLOCK_SKEW"]).at(0) == -60
    with pytest.raises(ValueError, match="PENSTOCK_CLOCK_SKEW"):
        faults.skewed(LAUNCH, "tomorrow")


def test_the_engine_asks_the_wall_clock_in_one_place() -> None:
    """What does not is what the machine's clock can disturb."""
    source = Path(wall.__file__).parent
    asking = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if any(call in path.read_text() for call in ("time.time()", "datetime.now(", "utcnow(", "time.time_ns("))
    }
    assert {name for name in asking if not name.startswith("bench/")} == {"clock.py"}


def test_damage_is_seeded_and_changes_a_file(tmp_path: Path) -> None:
    path, data = tmp_path / "file", random.Random(1).randbytes(10_000)
    names = []
    for damage in faults.ways(len(data), 5, random.Random(2)):
        path.write_bytes(data)
        with damaged(path, damage):
            assert not path.exists() or path.read_bytes() != data, damage.name
        assert path.read_bytes() == data
        names.append(damage.name)
    assert names == [damage.name for damage in faults.ways(len(data), 5, random.Random(2))]
    assert len(set(names)) == 5 + 3 + 2
    assert faults.flip(-1).apply(b"ab") == b"a" + bytes([ord("b") ^ 0x10])
    assert faults.zeroed(1, 2).apply(b"abcd") == b"a\0\0d"


def test_targets_need_a_known_kind(tmp_path: Path) -> None:
    launch = faults.Launch(tmp_path / "app.sql", tmp_path / "ckpt", tmp_path / "out", 100)
    assert not any(faults.targets(launch, kind) for kind in KINDS)
    with pytest.raises(ValueError, match="no files of kind 'cheese'"):
        faults.targets(launch, "cheese")


@pytest.mark.parametrize("mount", [True, False])
def test_a_small_disk_fills(tmp_path: Path, mount: bool) -> None:
    with faults.small_disk(tmp_path / "disk", 1 << 20, mount) as disk:
        if mount and disk.kind != faults.MOUNTED:
            pytest.skip("needs the right to mount a small file system")
        launch = disk.filled(LAUNCH, 16 << 10)
        assert (launch.file_limit is None) is mount
        write = f"open({str(disk.folder / 'file')!r}, 'wb').write(bytes({64 << 10}))"
        limited = (
            f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({launch.file_limit},) * 2);"
            if not mount
            else ""
        )
        done = subprocess.run([sys.executable, "-c", limited + write], capture_output=True, text=True, check=False)
        assert disk.message in done.stderr
        disk.clear()
        subprocess.run([sys.executable, "-c", write], check=True)
    assert not mount or not any((tmp_path / "disk").iterdir())


def test_outputs_are_compared_as_multisets(tmp_path: Path) -> None:
    def write(name: str, *tables: pa.Table) -> Path:
        for number, table in enumerate(tables):
            path = tmp_path / name / "q" / f"q-{number:08d}-0000.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
        return tmp_path / name

    one, two = pa.table({"a": [1, 2]}), pa.table({"a": [3]})
    reference = faults.collect(write("reference", one, two))
    faults.assert_same_output(write("same", two, one), reference, "moved")
    for name, tables in {"twice": (one, two, two), "missing": (one,), "other": (one, pa.table({"a": [4]}))}.items():
        with pytest.raises(AssertionError, match="query q"):
            faults.assert_same_output(write(name, *tables), reference, name)
    (write("left", one, two) / "q" / "stray").touch()
    with pytest.raises(AssertionError, match="stray"):
        faults.assert_same_output(tmp_path / "left", reference, "left")


def test_a_failure_is_one_message() -> None:
    good = faults.Ended(1, None, "error: cannot read\n  hint: mend it\n", False)
    faults.assert_one_message(good, "")
    noise = (
        "Traceback (most recent call last):\n"
        '  File "/x/pyspark.zip/pyspark/daemon.py", line 264, in manager\n'
        '  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker\n'
        "BrokenPipeError: [Errno 32] Broken pipe\n"
    )
    faults.assert_one_message(faults.Ended(1, None, noise + good.messages + noise, False), "")
    for code, messages in [(0, good.messages), (1, ""), (1, good.messages * 2), (1, "Traceback\n" + good.messages)]:
        with pytest.raises(AssertionError):
            faults.assert_one_message(faults.Ended(code, None, messages, False), "")


def test_random_kills_are_seeded_and_enough() -> None:
    for count in (1, 7, 25, 50):
        kills = faults.random_kills(count, random.Random(count))
        assert kills == faults.random_kills(count, random.Random(count))
        assert sum(kill.count() for kill in kills) >= count
    assert {kill.fault.point for kill in faults.random_kills(50, random.Random(3)) if kill.fault} == set(points.POINTS)
