"""Sources: the contract in `base`, then one module per system, found by URI scheme in `registry`.

| scheme | module | shared with others |
| --- | --- | --- |
| `parquet:` | `parquet`, `parquet_files` | `files`: what an address matches |
| `csv:`, `json:` | `csv`, `json` | `files`; `text_source` positions, `text_blocks` reading, |
| | | `text_columns` values, `text_infer` types, `text_options`, `unpack` compression |
| `generate:` | `generate`, `synthetic`, `flows` | |
"""
