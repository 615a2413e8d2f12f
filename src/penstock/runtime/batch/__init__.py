"""The micro-batch: what is decided, its tasks, the driver that closes, compacts and commits."""

from __future__ import annotations
