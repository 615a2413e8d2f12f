"""Sinks: the contract in `base`, the choice by URI in `registry`, then one module per system.

| sink | rows lie, until published, in | published means | delivery |
| --- | --- | --- | --- |
| `parquet:DIR`, `csv:DIR`, `json:DIR` | `DIR/.penstock` | renamed into `DIR` (`folder`) | exactly once |
| `memory:[NAME]` | `CHECKPOINT/memory/QUERY/.penstock` | renamed; the temp view NAME is made again | exactly once |
| `console:` | `CHECKPOINT/staged/QUERY` | printed, then marked as delivered (`batches`) | at least once |
| `discard:` | nowhere | nothing: they are dropped where they are made (`discard`) | none |
| a function, `SparkSink` | `CHECKPOINT/staged/QUERY` | called, then marked as delivered | at least once |

| module | has |
| --- | --- |
| `folder`, `batches` | what sinks with files, and sinks that hand rows over, have in common |
| `staging`, `plain`, `schema` | names of parts; values as text; the columns of a result |

May touch `logical` and `state`. Tasks call `stage`, the driver `publish`.
"""
