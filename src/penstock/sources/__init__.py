"""Sources turn files and recipes into streams of records.

| module | what it does |
| --- | --- |
| `base` | the contract: `Source`, `Position`, `Abilities`, and what Arrow types mean |
| `registry` | finds the source of a URI scheme |
| `options` | checks WITH options |
| `fit` | refuses queries that a stream cannot serve |
| `texts` | strings of Arrow as bytes |
| `decimals` | decimals and dates of Arrow as numbers |
| `files` | finds the files that an address means |
| `counted` | counts the records of files when they are met: the base of text and captures |
| `unpack` | unpacks compressed files |
| `boundaries` | cuts batches where a source can begin cheaply |
| `flags` | marks what could not be read in a batch |
| `tail` | finds files that arrive while a run lasts, and logs their order |
| `tables` | reads tables that records are joined with, once and whole |

| room | scheme |
| --- | --- |
| `live` | what arrives by the clock: `replay:` |
| `text` | `csv:`, `json:` |
| `capture` | `pcap:` |
| `parquet` | `parquet:` |
| `generate` | `generate:` |
| `arrow` | `arrow:`, and tables in memory |
"""
