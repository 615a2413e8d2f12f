"""What tables cost and pass on: unit costs, collisions, evictions, the flow through a tree."""

from __future__ import annotations
