"""`make demo-overload`: a burst of five times what a run can read, through `examples/overload.sql` on local Spark.

    capacity (a short run) ──► run, by the clock ──► windows beside the truth ──► table, words, overload.png

Tasks are slowed down so that the burst is as hard on any machine (`capacity`); what is read of it, when results come
and how good they are is the run's own. Everything lands in `demo-out/overload/` of the current folder; a second run
keeps the traces and replaces the rest.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from penstock.app.demos import burst, capacity
from penstock.app.demos.burst import Profile, burst_profile, read_burst, write_burst
from penstock.app.demos.capacity import Capacity
from penstock.app.demos.windows import Told, group_windows, read_results, told
from penstock.app.state_view import state_of
from penstock.errors import ConfigError, PenstockError, RunError
from penstock.state.lease import holder

APP = Path(__file__).parents[4] / "examples" / "overload.sql"
FOLDER = Path("demo-out") / "overload"
WANTED = 40_000  # records a second that the run can read
CALM, PEAK = 0.4, 5.0  # of that
SEED, WINDOW, PROMISE = 7, 10, 2.0  # as the app has them
PROFILE = burst_profile(CALM * WANTED, PEAK * WANTED, before=24, during=16, after=20)
TRIAL_SECONDS = 6  # of the short run
SERVICE, SERVICE_NAME = 25, "mail"
STREAM = "flows"
MEGA = 1e6


@dataclass(frozen=True)
class Seen:
    """A run that is over: the trace, its windows, what arrived, and how much of it can be read."""

    trace: pa.Table
    capacity: Capacity
    speed: float
    summary: dict[str, Any]
    windows: list[Told]
    folder: Path

    @property
    def estimated(self) -> list[Told]:
        return [one for one in self.windows if one.estimated]

    @property
    def latest(self) -> float:
        return max(one.late for one in self.windows)

    @property
    def all_read(self) -> float:
        """Seconds that the last records of the burst would wait, if all were read."""
        arrived = burst.arrivals(self.trace, 1.0)
        return float(burst.waiting(arrived, 1.0, self.capacity.rate / self.speed).max()) / self.speed


def main() -> None:
    """Run the demo; errors end it as they end the command line."""
    try:
        run(FOLDER, Console(highlight=False, soft_wrap=True))
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)
    except PenstockError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, RunError) else 2)


def run(folder: Path, console: Console, profile: Profile = PROFILE, wanted: float = WANTED) -> Seen:
    """The whole demo in `folder`."""
    if not APP.exists():
        raise ConfigError(f"{APP} is missing", "the demo runs from a checkout of penstock")
    if holder(folder / "run" / "checkpoint") is not None:
        raise ConfigError(f"another demo runs in {folder}", "wait for its end")
    trace = make_trace(folder / f"burst-{burst.records_of(profile)}.arrow", profile, console)
    trial = burst_profile(wanted, wanted, TRIAL_SECONDS, 0, 0)
    short = make_trace(folder / f"trial-{burst.records_of(trial)}.arrow", trial, console)
    for place in ("trial", "run"):
        shutil.rmtree(folder / place, ignore_errors=True)
    headline(console, "the capacity", "a short run, with tasks that sleep for each record that they read")
    found = capacity.measured(APP, short, wanted, folder / "trial")
    speed = min(1.0, found.rate / wanted)
    console.print(f"  {found.rate:,.0f} records a second, if a task sleeps {found.drag / 1000:,.1f} µs for each")
    more = "" if speed == 1 else f", at {speed:.2f} times its speed"
    note = f"{burst.seconds_of(profile) / speed:.0f} seconds by the clock{more}; {trace.name}"
    headline(console, "the run", note)
    summary = capacity.run_app(APP, trace, f"{speed:.6g}", found, folder / "run")
    seen = gathered(trace, found, speed, summary, folder / "run")
    show(seen, console)
    draw(seen, folder / "overload.png", console)
    return seen


def make_trace(path: Path, profile: Profile, console: Console) -> Path:
    """Seeded, so the file is the same on every machine; made once."""
    if not path.exists():
        console.print(f"  writing {path}: {burst.records_of(profile):,} records")
        write_burst(path, profile, SEED)
    return path


def gathered(trace: Path, found: Capacity, speed: float, summary: dict[str, Any], folder: Path) -> Seen:
    records = read_burst(trace)
    kept = state_of(str(folder / "checkpoint"))["windows"]["totals"]["kept"]
    windows = told(kept, read_results(folder, "totals"), burst.sums(records, WINDOW))
    return Seen(records, found, speed, summary, windows, folder)


def headline(console: Console, title: str, note: str) -> None:
    console.print(f"\n[bold cyan]{title}[/]  [dim]{note}[/]")


def show(seen: Seen, console: Console) -> None:
    headline(console, "the windows", f"of {WINDOW} seconds; query totals, LIMIT DELAY TO '{PROMISE:.0f} seconds'")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("window", "arrived/s", "read", "estimated", "MB", "± MB", "off by", "services off by", "delay"):
        table.add_column(name, justify="left" if name == "window" else "right", no_wrap=True)
    for one, group in zip(seen.windows, services_off(seen), strict=True):
        style = "bold yellow" if one.estimated else ""
        table.add_row(
            f"{one.start:.0f}–{one.end:.0f} s",
            f"{(one.read + one.estimated) / (one.end - one.start):,.0f}",
            f"{one.read:,}",
            f"{one.estimated:,}",
            f"{one.bytes / MEGA:,.1f}",
            f"{one.error / MEGA:,.1f}",
            f"{percent(one.off)} %" if one.off else "exact",
            f"{100 * group:.2f} %" if group else "exact",
            f"{one.late:.2f} s{' late' if one.overdue else ''}",
            style=style,
        )
    Console(file=console.file, width=max(console.width, 112), highlight=False).print(table)
    console.print("  ±: one standard error of the bytes; services: mean over ports below 1024 with 1 % or more")
    headline(console, "what happened", "")
    for line in words(seen):
        console.print(f"  {line}", markup=False)


def percent(part: float) -> str:
    """With its sign, if anything of it is left."""
    return f"{100 * part:+.2f}" if abs(part) >= 5e-5 else "0.00"


def services_off(seen: Seen) -> list[float]:
    """By window: how far the bytes of services are off, in the mean, as parts of them."""
    truth = burst.sums(seen.trace, WINDOW, ("dport",))
    results = read_results(seen.folder, "services")
    ports = truth.filter(pc.less(truth["dport"], 1024)).group_by("dport").aggregate([("bytes", "sum")])
    least = 0.01 * pc.sum(ports["bytes_sum"]).as_py()
    large = ports.filter(pc.greater_equal(ports["bytes_sum"], least))["dport"].to_pylist()
    each = [group_windows(results, truth, "dport", port, WINDOW) for port in large]
    return [
        sum(abs(one["bytes"][at] / one["truth"][at] - 1) for one in each if one["truth"][at]) / len(each)
        for at in range(len(seen.windows))
    ]


def words(seen: Seen) -> list[str]:
    """The run in sentences."""
    peak, rate = burst.arrivals(seen.trace, 1.0).max() * seen.speed, seen.capacity.rate
    times = f"{peak / rate:.1f} times the {rate:,.0f} that this run can read"
    kept = f"{sum(not one.overdue for one in seen.windows)} of {len(seen.windows)} windows"
    lines = [
        f"The burst brought {peak:,.0f} records a second: {times}.",
        f"{kept} kept the promise of {PROMISE:g} seconds; the latest came {seen.latest:.2f} seconds after its end.",
        f"Had all been read, results would have come up to {seen.all_read:.0f} seconds late (by rate and capacity).",
    ]
    rough, calm = seen.estimated, [one for one in seen.windows if not one.estimated]
    if rough:
        read, left = sum(one.read for one in rough), sum(one.estimated for one in rough)
        most = 100 * max(abs(one.off) for one in rough)
        within = sum(abs(one.bytes - one.truth) <= 2 * one.error for one in rough)
        lines.append(f"Windows estimated, from one record in {(read + left) / read:.1f}: {len(rough)}.")
        lines.append(
            f"Their bytes are off by at most {most:.2f} %; within two standard errors: {within} of {len(rough)}."
        )
    if calm:
        wrong = sum(one.bytes != one.truth for one in calm)
        lines.append(f"Windows read in full: {len(calm)}, of which {len(calm) - wrong} are exact to the byte.")
    return lines


def draw(seen: Seen, path: Path, console: Console) -> None:
    """The picture, where matplotlib is installed."""
    try:
        from penstock.app.pictures.overload import draw_overload
    except ImportError:
        console.print("  no picture: matplotlib is not installed (pip install 'penstock[plot]')", markup=False)
        return
    truth, results = burst.sums(seen.trace, WINDOW, ("dport",)), read_results(seen.folder, "services")
    group = group_windows(results, truth, "dport", SERVICE, WINDOW)
    draw_overload(path, seen, group, f"{SERVICE_NAME} (port {SERVICE})")
    headline(console, "to look at", "")
    console.print(f"  {path}   what arrived, how late results came, how good they are")
    console.print(f"  {seen.folder}/results/*/*.parquet   one folder per query")
    console.print(f"  penstock state --checkpoint {seen.folder}/checkpoint   windows, with their delays")


if __name__ == "__main__":
    main()
