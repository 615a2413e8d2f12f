"""The benchmark `packets`: what is asked, and what the answers should be.

| module | has |
| --- | --- |
| `queries` | the dozen queries, as penstock and its peers spell them |
| `fields` | what tshark says of every packet |
| `reference` | reference answers from those fields |
| `capture_walk` | the loop over packets of `benchmarks.data.captures` |
"""

from __future__ import annotations
