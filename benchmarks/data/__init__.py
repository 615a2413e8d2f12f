"""The records that benchmarks read.

| module | makes |
| --- | --- |
| `files` | flow records and a connection log, as Parquet and text |
| `joins` | two streams with a common key |
| `traces` | pcap files, with what every packet says |
| `captures`, `frames` | a capture repeated to any length; generated packets |
"""

from __future__ import annotations
