"""Demos that need more than one module.

| module | has |
| --- | --- |
| `overload` | `make demo-overload`: from a burst to a table and a picture |
| `burst` | a trace with one burst, and what is true of its windows |
| `capacity` | how much a run can read, and how to make that a known number |
"""

from __future__ import annotations
