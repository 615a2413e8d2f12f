"""What can feed what: grains, the lattice of a stream's relations, configurations and their notation."""

from __future__ import annotations
