"""This checkout beside another one: the same work, in turns, by processor time.

    python -m benchmarks.comparisons.beside OTHER --times 5 --work DIR [--only multiquery …]

Both run the engine `penstock` of their own benchmarks on the same jobs, one after the other, again and again; who
begins changes from round to round. Each round gives a ratio of processor seconds, this checkout to the other; printed
are their mean and its 95 % interval. Memory is the peak of tasks above what their processes begin with. The last line
is of twelve prefix lengths of one address, stored in a checkpoint: bytes that tasks have written.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import fmean

from benchmarks.comparisons.peers import CHECKOUT
from benchmarks.data import files, traces
from benchmarks.measure import machine
from benchmarks.measure.job import Answer, EngineJob, PacketJob, parse_answer
from benchmarks.measure.jobs import job_of
from benchmarks.measure.paired import interval

LENGTHS = (4, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32)


@dataclass(frozen=True)
class Checkout:
    """A checkout with its own environment; benchmarks were part of the package once."""

    root: Path

    @property
    def python(self) -> str:
        return str(self.root / ".venv" / "bin" / "python")

    def engine(self, name: str) -> str:
        outside = (self.root / "benchmarks" / "engines").exists()
        return f"benchmarks.engines.{name}" if outside else f"penstock.bench.engines.{name}"

    def run(self, command: Sequence[str]) -> str:
        """What a command of this checkout prints."""
        path = os.pathsep.join([str(self.root), str(self.root / "src")])
        done = subprocess.run(
            [self.python, *command], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
        )
        if done.returncode:
            raise SystemExit(f"{self.root.name} failed: {done.stderr[-2000:]}")
        return done.stdout


def answer_of(checkout: Checkout, engine: str, job: EngineJob | PacketJob) -> Answer:
    """One run of an engine."""
    folder = Path(tempfile.mkdtemp(prefix="beside-", dir=job.work))
    try:
        file = folder / "job.json"
        file.write_text(json.dumps(asdict(replace(job, work=str(folder), started_at=time.time()))))
        answer = parse_answer(checkout.run(["-m", checkout.engine(engine), str(file)]))
        assert answer is not None
        return answer
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compared(name: str, engine: str, job: EngineJob | PacketJob, both: tuple[Checkout, Checkout], times: int) -> None:
    """Print the ratio of processor time, and peaks of memory."""
    ratios, peaks = [], ([(0, 0)], [(0, 0)])
    for number in range(times):
        found: dict[int, Answer] = {}
        for which in (0, 1) if number % 2 else (1, 0):
            found[which] = answer_of(both[which], engine, job)
            memory = found[which].extra.get("memory", {})
            peaks[which].append((memory.get("lfta_peak_bytes", 0), memory.get("lfta_above_baseline_bytes", 0)))
        new, old = (found[which].cpu_seconds or 0.0 for which in (0, 1))
        same = "same rows" if found[0].digests == found[1].digests else "DIFFERENT ROWS"
        ratios.append(new / old)
        print(f"  {name} {number}: {new:.2f} s, other {old:.2f} s, ratio {new / old:.3f}, {same}", flush=True)
    low, high = interval(ratios)
    most = [max(each) for each in peaks]
    says = [f"{peak / (1 << 20):.0f} MiB, {above / (1 << 20):.0f} above the start" for peak, above in most]
    print(f"{name}: ratio {exp(fmean(map(log, ratios))):.3f}, 95 % {low:.3f} to {high:.3f}; "
          f"most memory of a task {says[0]}, other {says[1]}", flush=True)  # fmt: skip


def prefixes(both: tuple[Checkout, Checkout], rows: int, work: Path) -> None:
    """Bytes that twelve prefix lengths of one address take on their way."""
    queries = "".join(
        f"CREATE QUERY p{n} INTO 'discard:' AS SELECT src/{n} AS net, count(*) AS n FROM s [RANGE '1 minute'] "
        f"GROUP BY src/{n};\n"
        for n in LENGTHS
    )
    app = work / "prefixes.sql"
    app.write_text(
        f"CREATE STREAM s FROM 'generate:flows' WITH (rows = {rows}) WATERMARK ts DELAY '1 second';\n{queries}"
    )
    written = []
    for checkout in both:
        folder = tempfile.mkdtemp(prefix="prefixes-", dir=work)
        told = json.loads(checkout.run(["-m", "penstock.app.cli", "run", str(app), "--json", "--output", folder]))
        counts = {name: query["rows"] for name, query in told["queries"].items()}
        written.append((told["state"]["written"], told["state"]["read"], sum(counts.values())))
    (new, read, results), (old, read_old, results_old) = written
    print(f"prefixes: {len(LENGTHS)} lengths, {rows:,} records, {results:,} results (other {results_old:,}); "
          f"bytes written {new:,}, other {old:,}, ratio {new / old:.3f}; read {read:,} ({read_old:,})")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.comparisons.beside", description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="another checkout, with its environment made")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "penstock-beside")
    parser.add_argument("--only", nargs="*", default=["multiquery", "packets", "zeek", "prefixes"])
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    both = Checkout(CHECKOUT), Checkout(asked.other.resolve())

    def tell(text: str) -> None:
        print(text, file=sys.stderr)

    if "multiquery" in asked.only:
        job = replace(job_of(files.flows(asked.work, asked.rows, tell), 12, asked.work), mode="auto", sink="discard")
        compared("multiquery", "penstock", job, both, asked.times)
    if "packets" in asked.only:
        for trace in traces.traces(asked.work, asked.rows, None, True, tell)[:1]:
            packets = PacketJob(
                str(trace.file), trace.rows, str(asked.work), machine.cores(), 0.0, "auto", asked.rows // 4
            )
            compared(f"packets {trace.name}", "packets_penstock", packets, both, asked.times)
    if "zeek" in asked.only:
        found = files.zeek(asked.work, asked.rows, tell)
        if isinstance(found, str):
            print(f"zeek: {found}")
        else:
            job = replace(job_of(found, 78, asked.work), mode="auto", sink="discard")
            compared("zeek, 78 pairs", "penstock", job, both, asked.times)
    if "prefixes" in asked.only:
        prefixes(both, asked.rows, asked.work)


if __name__ == "__main__":
    main()
