"""Damaged captures, by the thousand and by the million: no crash, no hang, no memory without bound, and all properties.

Shards run in child processes (`pcap_cases`), so that a crash is caught and its case printed. A shard can be run again
by hand: `python tests/property/pcap_cases.py FOLDER CASE 1`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pcap_cases
import pytest
from pcap_bases import write_bases
from pcap_pool import Pool

import penstock
from penstock.kernels.packets.capture import PacketRecords
from support.mutations import anatomy, first_packets, mutated
from support.packet_samples import SAMPLES

FIRST = int(os.environ.get("PENSTOCK_SEED", "0"))
QUICK, MILLION, CHECKED = 2_000, 1_000_000, 100_000
SHARD = 25_000
COMPILES = 500  # cases that have all kernels compiled, which takes more memory than any capture
MOST_MB, MOST_MORE_MB = 500, 150  # of a child that finds them compiled
HANGS = 1800  # seconds of a shard; within it each case has its own alarm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bases = write_bases(tmp_path_factory.mktemp("mutations") / "bases")
    child(bases, FIRST, COMPILES)
    return bases


def shard(folder: Path, first: int, count: int, **env: str) -> dict[str, Any]:
    """Run cases in a child whose memory is bounded; what it counted."""
    found = child(folder, first, count, **env)
    assert found["peak_mb"] < MOST_MB
    assert found["peak_mb"] - found["warm_mb"] < MOST_MORE_MB
    return found


def child(folder: Path, first: int, count: int, **env: str) -> dict[str, Any]:
    paths = (Path(penstock.__file__).parents[1], Path(__file__).parents[1])  # the package, and `support`
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **env}
    command = [sys.executable, pcap_cases.__file__, str(folder), str(first), str(count)]
    done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=HANGS)
    if done.returncode:
        at = (folder.parent / f"at-{first}").read_text().strip()
        pytest.fail(f"case {at}: exit {done.returncode}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["cases"] == count
    return found


def campaign(folder: Path, cases: int, **env: str) -> None:
    began = time.monotonic()
    starts = range(FIRST, FIRST + cases, SHARD)
    with ThreadPoolExecutor(os.cpu_count() or 1) as workers:
        found = list(workers.map(lambda first: shard(folder, first, min(SHARD, FIRST + cases - first), **env), starts))
    seconds, rows = time.monotonic() - began, sum(one["rows"] for one in found)
    most = max(one["peak_mb"] for one in found)
    print(
        f"\n{cases} files, {rows} packets, {seconds:.0f} s: {cases / seconds:.0f} files/s, at most {most} MB a process"
    )


def test_mutations_depend_on_the_seed_alone(folder: Path) -> None:
    for file in sorted(folder.iterdir())[:6]:
        data = file.read_bytes()
        known = anatomy(data)
        assert len(known.packets) <= 64
        assert first_packets(data, 64) == data
        assert len(anatomy(first_packets(data, 1)).packets) == 1
        several = {mutated(data, known, seed) for seed in range(30)}
        assert len(several) > 20
        assert several == {mutated(data, known, seed) for seed in range(30)}


@pytest.mark.parametrize("unwrap", [0, 7])
def test_no_packet_is_read_beyond_its_end(unwrap: int) -> None:
    """Every sample cut at every byte, by a snap length and as sent: what follows it makes no difference."""
    pool = Pool()
    for sample in SAMPLES.values():
        size = len(sample.data)
        records = PacketRecords(2 * size + 2)
        records.captured[:] = [*range(size + 1)] * 2
        records.length[:] = [*range(size + 1), *[size] * (size + 1)]
        records.link[:], records.time[:], records.interface[:], records.reason[:] = sample.link, 0, 0, 0
        pool.records.append(records)
        pool.packets += [sample.data[:cut] for cut in range(size + 1)] * 2
    pool.check(unwrap)


def test_some_damaged_captures(folder: Path) -> None:
    found = shard(folder, FIRST, QUICK)
    assert found["read"] > QUICK // 2
    assert found["rows"] > QUICK


@pytest.mark.slow
def test_a_million_damaged_captures(folder: Path) -> None:
    campaign(folder, MILLION)


@pytest.mark.slow
def test_damaged_captures_with_bounds_checked(folder: Path, tmp_path: Path) -> None:
    """Every access of the kernels to an array is checked; packets also lie at the very end of their buffers."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PENSTOCK_ALONE": "64"}
    child(folder, FIRST, COMPILES, **checked)
    campaign(folder, CHECKED, **checked)
