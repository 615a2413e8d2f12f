"""What `penstock reproduce` calls: experiments by id, printed as claims and tables and handed on as JSON data.

To add an experiment: one module with a function `Settings, Tell -> Findings`, and one line in `EXPERIMENTS`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.kit.report import Experiment, ExperimentSettings, Findings, Numbers
from penstock.errors import ConfigError

# Modules are imported when they are run: some compile, some read captures.
EXPERIMENTS = {
    "smap-collision": ("experiments.smap.collision", "Fig. 7-12, Sec. 8.2: the collision rate and the cost model"),
    "smap-allocation": ("experiments.smap.allocation", "Tables 3, 4, Fig. 15: space for given configurations"),
    "smap-choice": ("experiments.smap.choice", "Fig. 16-18: choosing phantoms, by the model"),
    "smap-real": ("experiments.smap.real", "Fig. 19, 20: with real collisions, against no phantoms"),
    "smap-misestimation": ("experiments.smap.misestimation", "Fig. 21: wrong numbers of groups"),
    "smap-peak-load": ("experiments.smap.peak_load", "Fig. 22: shrink and shift under a peak load; planning time"),
    "smap-epochs": ("experiments.smap.epochs", "Table 5, Fig. 23-27: epochs of different lengths"),
    "tree-eviction": ("experiments.tree.eviction", "Fig. 2, 3: Zipf laws, and what tables evict"),
    "tree-memory": ("experiments.tree.memory", "Fig. 4: aggregate trees, cost against memory"),
    "tree-queries": ("experiments.tree.queries", "Fig. 5: aggregate trees, cost against queries; uniform data"),
    "join-cost": ("experiments.join.cost", "Fig. 4: early and late plans of a join, predicted and measured"),
    "join-threeway": ("experiments.join.threeway", "Fig. 5: the same with three streams"),
    "join-showcases": ("experiments.join.showcases", "Fig. 6: where each plan is the best"),
}
WIDTH = 120  # that tables and claims need; rich takes 80 where output is no terminal


def run_experiments(
    names: Sequence[str], settings: ExperimentSettings, folder: Path, answers: Console, watching: Console
) -> Iterator[dict[str, Any]]:
    """Run these in turn; claims and tables go to `answers`, progress to `watching`, pictures into the folder."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ConfigError(f"unknown experiment '{unknown[0]}'", f"experiments are {', '.join(EXPERIMENTS)}")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder", "pictures go into one, named by -o")
    from experiments.kit.captured import capture_files

    capture_files(settings)  # a folder that the user named wrongly is told before the work
    for name in names:
        start = time.monotonic()
        with watching.status(name) as status:

            def tell(text: str, name: str = name, show: Any = status.update) -> None:
                show(f"{name}: {text}")

            experiment: Experiment = import_module(EXPERIMENTS[name][0]).run
            findings = experiment(settings, tell)
            tell("picture")
            picture = _draw(folder / f"{name}.png", findings, watching)
        seconds = round(time.monotonic() - start, 1)
        show(name, findings, picture, seconds, answers)
        yield {
            "id": name,
            "claims": [claim.as_json() for claim in findings.claims],
            "picture": picture,
            "seconds": seconds,
            "tables": [numbers.as_json() for numbers in findings.numbers],
            "notes": list(findings.notes),
        }


def _draw(path: Path, findings: Findings, console: Console) -> str | None:
    """The picture, where matplotlib is installed."""
    try:
        from experiments.kit.pictures import draw
    except ImportError:
        console.print("no picture: matplotlib is not installed (pip install 'penstock[plot]')", markup=False)
        return None
    draw(path, findings.title, findings.panels)
    return str(path)


def show(name: str, findings: Findings, picture: str | None, seconds: float, console: Console) -> None:
    """The tables, then every claim with its answer."""
    wide = console if console.width >= WIDTH else Console(file=console.file, width=WIDTH, highlight=False)
    wide.print(Text(f"{name}: {findings.title}", "bold"))
    for numbers in findings.numbers:
        wide.print(shown_table(numbers))
    for note in findings.notes:
        wide.print(Text(note, "dim"))
    wide.print(_claims(findings))
    held = sum(claim.holds for claim in findings.claims)
    where = f", picture in {picture}" if picture else ""
    wide.print(f"{name}: {held} of {len(findings.claims)} claims hold; {seconds} s{where}\n", markup=False)


def shown_table(numbers: Numbers) -> Table:
    made = Table(title=numbers.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, column in enumerate(numbers.columns):
        made.add_column(column, justify="right" if place else "left")
    for row in numbers.rows:
        made.add_row(*row)
    return made


def _claims(findings: Findings) -> Table:
    made = Table(title="claims", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_lines=False)
    made.add_column("", no_wrap=True)
    for column in ("claim", "paper", "ours", "why"):
        made.add_column(column, ratio=3 if column in ("claim", "why") else 2)
    for claim in findings.claims:
        answer = Text("holds", "green") if claim.holds else Text("FAILS", "bold red")
        made.add_row(answer, claim.claim, claim.paper, claim.ours, claim.why)
    return made
