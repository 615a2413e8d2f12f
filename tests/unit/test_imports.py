"""Import rules: planning loads no engine, packages import only earlier ones, and there is no `utils`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "penstock"
# Data-flow order; those on one line stand beside each other and may be used by the next lines only.
ORDER = (
    ("lang",),
    ("logical",),
    ("sharing",),
    ("kernels",),
    ("state",),
    ("sources",),
    ("sinks",),
    ("runtime",),
    ("monitor",),
    ("bench",),
    ("lab",),
    ("app",),
    ("testing",),
)
ANYWHERE = frozenset({"clock", "errors", "faults"})
HEAVY = ("pyspark", "numba", "pyarrow")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def package_of(path: Path) -> str:
    """The package below penstock that a module is in; its own name for modules at the top."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imported(path: Path) -> Iterator[str]:
    """Names below penstock that a module imports anywhere in its code."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "penstock":
            names = [f"penstock.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        yield from (name.split(".")[1] for name in names if name.startswith("penstock."))


def allowed(package: str) -> frozenset[str]:
    """A package's own name and those before it."""
    place = next(i for i, line in enumerate(ORDER) if package in line)
    return frozenset(name for line in ORDER[:place] for name in line) | {package} | ANYWHERE


def test_every_package_has_a_place_in_the_order() -> None:
    found = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert found == {name for line in ORDER for name in line}


@pytest.mark.parametrize("package", [name for line in ORDER for name in line])
def test_imports_point_to_earlier_packages(package: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports penstock.{name}"
        for path in modules()
        if package_of(path) == package
        for name in imported(path)
        if name not in allowed(package)
    ]
    assert not wrong


def test_what_is_used_everywhere_imports_nothing_of_ours() -> None:
    for name in sorted(ANYWHERE):
        assert list(imported(PACKAGE / f"{name}.py")) == []


def test_planning_loads_no_engine() -> None:
    planning = [
        "penstock." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for path in modules()
        if package_of(path) in ("lang", "logical", "sharing")
    ]
    code = (
        f"import importlib, sys\nfor name in {planning!r}: importlib.import_module(name)\n"
        f"print(sorted(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_kernels_load_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, penstock.kernels.tables, penstock.kernels.fold, penstock.kernels.order, penstock.kernels.inet\n"
        "print(sorted(name for name in ('pyspark', 'pyarrow') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_there_is_no_utils() -> None:
    assert [path for path in modules() if "util" in path.stem or "helper" in path.stem] == []
