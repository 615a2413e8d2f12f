"""Generated records as a source, and for `penstock generate`."""

from __future__ import annotations
