"""How a run is measured and answers are compared."""

from __future__ import annotations
