"""Random apps with data and settings, by seed."""

from __future__ import annotations
