"""The lease: one owner at a time, taken over only from the dead."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import StateError
from penstock.state import lease as leases
from penstock.state.files import replace


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing but live."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def record(checkpoint: Path) -> dict[str, Any]:
    newest = max((checkpoint / leases.FOLDER).glob("[0-9]*.json"))
    found: dict[str, Any] = json.loads(newest.read_bytes())
    return found


def rewrite(checkpoint: Path, **changes: Any) -> None:
    newest = max((checkpoint / leases.FOLDER).glob("[0-9]*.json"))
    replace(newest, json.dumps(record(checkpoint) | changes).encode())


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_taken_and_released(tmp_path: Path) -> None:
    assert leases.holder(tmp_path) is None
    for _ in range(3):
        lease = leases.acquire(tmp_path, [os.getpid()])
        lease.check()
        owner = leases.holder(tmp_path)
        assert owner is not None
        assert owner.processes[0][0] == os.getpid()
        lease.release()
        assert leases.holder(tmp_path) is None
    assert [path.name for path in (tmp_path / leases.FOLDER).iterdir()] == ["00000003.json"]


def test_the_living_are_not_taken_over(tmp_path: Path) -> None:
    lease = leases.acquire(tmp_path, [os.getpid()])
    with pytest.raises(StateError, match=f"in use by process {os.getpid()} on {socket.gethostname()}"):
        leases.acquire(tmp_path, [os.getpid()])
    lease.check()
    lease.release()


def test_a_stale_owner_may_write_no_more(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    stale = leases.acquire(tmp_path, [sleeper.pid])
    stale.check()
    end(sleeper)
    owner = leases.acquire(tmp_path, [os.getpid()])
    with pytest.raises(StateError, match="another run has taken over"):
        stale.check()
    before = record(tmp_path)
    stale.release()
    owner.check()
    assert record(tmp_path) == before
    owner.release()


def test_a_zombie_is_dead(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """Killed, and its parent (this test) has not noticed yet."""
    stale = leases.acquire(tmp_path, [sleeper.pid])
    sleeper.kill()
    while "Z" not in Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2]:
        time.sleep(0.01)
    leases.acquire(tmp_path, [os.getpid()]).release()
    stale.release()


def test_waits_for_a_dead_driver_s_jvm(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    driver = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stale = leases.acquire(tmp_path, [driver.pid, sleeper.pid])
    driver.communicate(b"\n")
    killer = threading.Timer(0.5, end, [sleeper])
    killer.start()
    owner = leases.acquire(tmp_path, [os.getpid()])
    assert sleeper.poll() is not None
    killer.join()
    stale.release()
    owner.release()


def test_a_jvm_that_stays_holds_the_checkpoint(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LINGER_SECONDS", 0.2)
    driver = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stale = leases.acquire(tmp_path, [driver.pid, sleeper.pid])
    driver.communicate(b"\n")
    with pytest.raises(StateError, match="in use by"):
        leases.acquire(tmp_path, [os.getpid()])
    stale.release()


def test_a_reused_process_id_is_another_process(tmp_path: Path) -> None:
    stale = leases.acquire(tmp_path, [os.getpid()])
    rewrite(tmp_path, processes=[[os.getpid(), "1"]])
    assert leases.holder(tmp_path) is None
    leases.acquire(tmp_path, [os.getpid()]).release()
    stale.release()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[leases.Lease]:
    """A lease of another machine that nobody renews."""
    monkeypatch.setattr(leases, "RENEW_SECONDS", 600.0)
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.5)
    lease = leases.acquire(tmp_path, [os.getpid()])
    rewrite(tmp_path, host="elsewhere", processes=[[1, "1"]])
    yield lease
    lease.release()


def test_a_run_on_another_machine_must_be_silent_for_long(tmp_path: Path, elsewhere: leases.Lease) -> None:
    rewrite(tmp_path, renewed=time.time() - leases.EXPIRE_SECONDS / 2)
    with pytest.raises(StateError, match="in use by process 1 on elsewhere"):
        leases.acquire(tmp_path, [os.getpid()])
    rewrite(tmp_path, renewed=time.time() - leases.EXPIRE_SECONDS - 1)
    owner = leases.acquire(tmp_path, [os.getpid()])
    with pytest.raises(StateError, match="taken over"):
        elsewhere.check()
    owner.release()


DAY = 86_400.0


def test_a_clock_that_went_ahead_blocks_nobody_for_ever(tmp_path: Path, elsewhere: leases.Lease) -> None:
    """The last renewal seems to come from tomorrow, and no other follows."""
    rewrite(tmp_path, renewed=time.time() + DAY)
    assert leases.holder(tmp_path) is None
    leases.acquire(tmp_path, [os.getpid()]).release()


@pytest.mark.parametrize("wrong", [-DAY, DAY])
def test_a_live_run_is_not_taken_over_because_clocks_differ(
    tmp_path: Path, elsewhere: leases.Lease, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is renewed while somebody looks at it, by a clock that is a day off."""
    monkeypatch.setattr(leases, "WATCH_SECONDS", 60.0)
    rewrite(tmp_path, renewed=time.time() + wrong)
    renewal = threading.Timer(0.3, rewrite, [tmp_path], {"renewed": time.time() + wrong + 5})
    renewal.start()
    with pytest.raises(StateError, match="in use by process 1 on elsewhere"):
        leases.acquire(tmp_path, [os.getpid()])
    renewal.join()
    elsewhere.check()


@pytest.mark.parametrize("wrong", [-DAY, DAY])
def test_on_one_machine_clocks_do_not_matter(tmp_path: Path, wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = leases.acquire(tmp_path, [os.getpid()])
    monkeypatch.setattr("penstock.clock.now", lambda: time.time() + wrong)
    with pytest.raises(StateError, match="in use by"):
        leases.acquire(tmp_path, [os.getpid()])
    lease.check()
    lease.release()
    leases.acquire(tmp_path, [os.getpid()]).release()


def test_renewed_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.01)
    lease = leases.acquire(tmp_path, [os.getpid()])
    first = record(tmp_path)
    while record(tmp_path)["renewed"] <= first["renewed"]:
        time.sleep(0.01)
    assert record(tmp_path)["processes"] == first["processes"]
    lease.release()
    assert record(tmp_path)["released"]


def test_a_renewal_keeps_who_it_was(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM that ended is not taken for whoever gets its process id later."""
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.01)
    lease = leases.acquire(tmp_path, [os.getpid(), sleeper.pid])
    first = record(tmp_path)
    end(sleeper)
    ended = time.time()
    while record(tmp_path)["renewed"] <= ended:
        time.sleep(0.01)
    assert record(tmp_path)["processes"] == first["processes"]
    lease.release()


def test_a_taken_over_owner_renews_nothing(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.01)
    stale = leases.acquire(tmp_path, [sleeper.pid])
    end(sleeper)
    owner = leases.acquire(tmp_path, [os.getpid()])
    time.sleep(0.1)
    owner.check()
    assert record(tmp_path)["processes"][0][0] == os.getpid()
    stale.release()
    owner.release()


def _acquire(checkpoint: str, start: Barrier, done: Barrier, result: str) -> None:
    start.wait()
    try:
        lease = leases.acquire(Path(checkpoint), [os.getpid()])
    except StateError as error:
        Path(result).write_text(str(error))
        done.wait()
        return
    done.wait()  # both have tried
    lease.check()
    Path(result).write_text("won")
    lease.release()


@pytest.mark.parametrize("turn", range(3))
def test_of_two_runs_one_wins(tmp_path: Path, turn: int) -> None:
    spawned = multiprocessing.get_context("spawn")
    start, done = spawned.Barrier(2), spawned.Barrier(2)
    results = [tmp_path / "first", tmp_path / "second"]
    racers = [
        spawned.Process(target=_acquire, args=(str(tmp_path / "checkpoint"), start, done, str(result)))
        for result in results
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
        racer.close()
    outcomes = [result.read_text() for result in results]
    assert outcomes.count("won") == 1
    lost = next(outcome for outcome in outcomes if outcome != "won")
    assert "in use by process" in lost or "taken by another run" in lost
