"""What typer loads for every command and these commands do without: it takes longer than all the rest of `--help`.

* pydantic makes sure of the value of every option. Text, paths and flags are right as they come, and so they are taken.
  Everything else, and whatever is not plainly right, goes typer's own way, which also has the messages.
* rich's Markdown is for help that is written in it.
* pandas (`without_pandas`), where a command runs an app without Spark.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Union, get_args, get_origin

import typer

PATHS = ("exists", "resolve_path", "path_type", "allow_dash", "writable")  # what a path may be asked for
PLAIN = (str, bool, Path)
MARKDOWN, BUILD = "rich.markdown", "build_runtime_param"


def install() -> None:
    """Have typer do without, if it is a typer that is built as expected."""
    # Loading modules makes objects and drops none: looking for garbage meanwhile takes a tenth of the time.
    gc.set_threshold(50_000, 20, 20)
    _take_plain_values()
    if MARKDOWN not in sys.modules:
        sys.modules[MARKDOWN] = ModuleType(MARKDOWN)
        sys.modules[MARKDOWN].__dict__["Markdown"] = _Markdown


def without_pandas() -> None:
    """Have this process do without pandas, which takes half a second to load. pyarrow loads it to see whether an array
    that it is handed is one of its Series; no command works with it. Spark's functions on Arrow insist on it."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas:
    """Finds that there is none."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("this command needs no pandas", name=name)


class _Markdown:
    """Stands for rich's Markdown until somebody makes one."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        del sys.modules[MARKDOWN]
        return import_module(MARKDOWN).Markdown(*arguments, **named)


def _take_plain_values() -> None:
    from typer import core

    build: Any = getattr(core, BUILD, None)
    base: Any = getattr(core, "RuntimeParam", None)
    if build is None or base is None:
        return

    @dataclass(frozen=True)
    class PlainParam(base):  # type: ignore[misc]
        """A parameter of a plain type, or a list of such."""

        kind: type
        many: bool
        descriptor: Any

        def _coerce_value(self, value: Any, param: Any, ctx: typer.Context) -> Any:
            items = value if self.many else [value]
            if not isinstance(items, list | tuple) or not all(isinstance(item, self.kind | str) for item in items):
                return build(self.descriptor)._coerce_value(value, param, ctx)
            if self.kind is bool and not all(isinstance(item, bool) for item in items):
                return build(self.descriptor)._coerce_value(value, param, ctx)
            found = [Path(item) if self.kind is Path else item for item in items]
            return found if self.many else found[0]

    def build_plainly(descriptor: Any) -> Any:
        kind, many = _plain(getattr(descriptor, "annotation", None))
        info = getattr(descriptor, "parameter_info", None)
        asked = getattr(info, "parser", None) or (kind is Path and any(getattr(info, name, None) for name in PATHS))
        if kind is None or info is None or asked or getattr(descriptor, "file_annotation", None) is not None:
            return build(descriptor)
        return PlainParam(info, descriptor.annotation, kind, many, descriptor)

    setattr(core, BUILD, build_plainly)


def _plain(annotation: Any) -> tuple[type | None, bool]:
    """The plain type of an annotation, if it is one, and whether there may be several values.

    >>> _plain(list[str] | None), _plain(Path | None), _plain(int)
    ((<class 'str'>, True), (<class 'pathlib.Path'>, False), (None, False))
    """
    if get_origin(annotation) in (Union, UnionType):
        rest = [part for part in get_args(annotation) if part is not type(None)]
        return _plain(rest[0]) if len(rest) == 1 else (None, False)
    if get_origin(annotation) is list:
        kind, _ = _plain(get_args(annotation)[0])
        return kind, kind is not None
    return (annotation, False) if annotation in PLAIN else (None, False)
