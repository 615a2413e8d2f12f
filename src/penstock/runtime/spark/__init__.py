"""Spark itself: Java, the session, the daemon that workers are forked from."""

from __future__ import annotations
