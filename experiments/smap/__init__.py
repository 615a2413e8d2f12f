"""Experiments of the smap paper, one module for each id."""

from __future__ import annotations
