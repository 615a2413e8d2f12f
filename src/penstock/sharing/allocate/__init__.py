"""How tables share memory: one module for each way, `registry` finds them by name."""

from __future__ import annotations
