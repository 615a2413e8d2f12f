"""Compiling ahead finds every module of kernels."""

from __future__ import annotations

from pathlib import Path

from penstock import kernels
from penstock.kernels import ahead


def test_modules_of_all_rooms_are_compiled() -> None:
    folder = Path(str(kernels.__file__)).parent
    written = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.py")}
    expected = {f"penstock.kernels.{name.replace('/', '.')}" for name in written}
    assert set(ahead.names()) == {name.removesuffix(".__init__") for name in expected} - {"penstock.kernels"}
