"""From statements to typed queries: names, windows, select lists, subqueries. `app.resolve` is the way in."""

from __future__ import annotations
