"""Import rules: planning loads no engine, packages import only earlier ones, and there is no `utils`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "penstock"
# Data-flow order of packages, of the rooms inside them, and of modules that stand apart in one. The longest name that
# fits a module is its place; a module imports what stands on its own line and on the lines above.
ORDER = (
    ("errors", "faults", "clock", "markup", "logs"),
    ("lang",),
    ("kernels",),
    ("kernels.tables",),
    ("kernels.text", "kernels.packets", "kernels.lookups"),
    ("kernels.ahead",),
    ("logical",),
    ("aggregates",),
    ("logical.values",),
    ("logical.resolve",),
    ("relations",),
    ("sharing.graph",),
    ("sharing.model",),
    ("sharing.allocate",),
    ("sharing.choose", "sharing.joins"),
    ("sharing",),
    ("triage",),
    ("state",),
    ("state.segments",),
    ("sources",),
    ("sources.live",),
    ("sources.text",),
    ("sources.capture", "sources.parquet", "sources.generate"),
    ("sources.arrow",),
    ("sources.tables",),
    ("sources.registry",),
    ("sources.stdin", "sources.live.replay"),
    ("sinks",),
    ("runtime",),
    ("runtime.spark",),
    ("runtime.expressions",),
    ("runtime.tables",),
    ("runtime.merge",),
    ("runtime.profile",),
    ("runtime.task",),
    ("runtime.batch",),
    ("runtime.planning",),
    ("runtime.engine",),
    ("runtime.run",),
    ("monitor",),
    ("app",),
    ("__main__",),
    ("testing.oracle",),
    ("testing",),
    ("testing.apps", "testing.faults"),
)
PLACES = {name: number for number, line in enumerate(ORDER) for name in line}
# Benchmarks and experiments stand outside the package and may use all of it.
OUTSIDE = ("benchmarks", "experiments")
HEAVY = ("pyspark", "numba", "pyarrow")
MOST_MODULES = 15


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_of(path: Path) -> str:
    """`runtime.task.times`; of a package its own name."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def place_of(name: str) -> str:
    """The longest name in the order that a module's name begins with."""
    parts = name.split(".")
    found = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((one for one in found if one in PLACES), "")


def imported(path: Path) -> Iterator[str]:
    """Modules below penstock that a module imports anywhere in its code."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [_module(node.module, alias.name) for alias in node.names]
        else:
            continue
        yield from (name.removeprefix("penstock.") for name in names if name.startswith("penstock."))


def _module(module: str, name: str) -> str:
    """`from package import module` names the module."""
    path = PACKAGE.parent / Path(*module.split("."), name)
    return f"{module}.{name}" if path.with_suffix(".py").exists() or path.is_dir() else module


def test_every_module_has_a_place_in_the_order() -> None:
    assert [name for name in map(name_of, modules()) if not place_of(name)] == []
    assert [name for name in PLACES if not (PACKAGE / Path(*name.split("."))).is_dir()] == [
        name for name in PLACES if (PACKAGE / Path(*name.split("."))).with_suffix(".py").exists()
    ]


@pytest.mark.parametrize("place", list(PLACES))
def test_imports_point_to_earlier_rooms(place: str) -> None:
    """Also inside a package: what a line of the order holds is known to the lines below it alone."""
    allowed = {name for line in ORDER[: PLACES[place]] for name in line} | {place}
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in modules()
        if place_of(name_of(path)) == place
        for name in imported(path)
        if place_of(name) not in allowed
    ]
    assert not wrong


def test_rooms_are_small_enough_to_look_around_in() -> None:
    folders = {path.parent for path in modules()}
    folders |= {path.parent for outside in OUTSIDE for path in (PACKAGE.parents[1] / outside).rglob("*.py")}
    counted = {str(folder): len([p for p in folder.glob("*.py") if p.stem != "__init__"]) for folder in folders}
    assert {folder: count for folder, count in counted.items() if count > MOST_MODULES} == {}


def test_planning_loads_no_engine() -> None:
    planning = [
        f"penstock.{name}"
        for name in map(name_of, modules())
        if name.split(".")[0] in ("lang", "logical", "aggregates", "relations", "sharing")
    ]
    code = (
        f"import importlib, sys\nfor name in {planning!r}: importlib.import_module(name)\n"
        f"print(sorted(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_kernels_load_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, penstock.kernels.tables.probe, penstock.kernels.tables.fold, penstock.kernels.inet\n"
        "print(sorted(name for name in ('pyspark', 'pyarrow') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_there_is_no_utils() -> None:
    assert [path for path in modules() if "util" in path.stem or "helper" in path.stem] == []
