"""penstock: many continuous aggregate queries on one fast stream, in one Spark streaming query.

`App` is the whole API; see `app.api`. What it needs beside are the errors it raises, `Run` to name what `App.start`
returns, and `SparkSink`. Each is loaded on first use, so that importing penstock costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app.api import App
    from penstock.errors import ConfigError, PenstockError, QueryError, RunError, SourceError, StateError
    from penstock.runtime.run.run import Run
    from penstock.sinks.spark import SparkSink

__all__ = [
    "App",
    "ConfigError",
    "PenstockError",
    "QueryError",
    "Run",
    "RunError",
    "SourceError",
    "SparkSink",
    "StateError",
]
__version__ = "0.1.0"  # the only place: the package and `penstock --version` take it from here

_PLACES = {"App": "app.api", "Run": "runtime.run.run", "SparkSink": "sinks.spark"}  # the others are errors


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'penstock' has no attribute '{name}'")
    return getattr(import_module(f"penstock.{_PLACES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
