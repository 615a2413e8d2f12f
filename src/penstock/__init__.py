"""penstock: many continuous aggregate queries on one fast stream, in one Spark streaming query.

`App` is the whole API; see `app.api`. It is loaded on first use, so that planning alone needs no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app.api import App

__all__ = ["App"]
__version__ = "0.1.0"  # the only place: the package and `penstock --version` take it from here


def __getattr__(name: str) -> Any:
    if name == "App":
        from penstock.app.api import App

        return App
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")
