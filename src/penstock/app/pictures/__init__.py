"""Pictures, with matplotlib where that is installed: of the demo's traffic (`traffic`), and of plans (`plans`)."""

from __future__ import annotations
