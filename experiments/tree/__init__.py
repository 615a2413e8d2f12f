"""Experiments of the aggregate-tree paper, one module for each id, with its claims and parts."""

from __future__ import annotations
