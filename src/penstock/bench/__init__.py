"""Benchmarks side by side with other engines: same file, same queries, one after the other, answers compared.

    multiquery.run ──► data (one Parquet file) ──► peers.run_engine: a process per engine ──► engines.<name>
                                                                                               │
    table.show ◄── results, ratios, same_answer ◄── digests compared with engines.arrow ◄─────┘

    packets.run ──► traces (captures, frames: pcap files) ──► the same, engines.packets_<name>
                       └──► packet_fields (tshark), packet_reference ──► compared with their answers

`packet_queries` has the dozen queries of `packets` and how peers are asked; `cpu` is processor time. `job` is what
goes to an engine's process and comes back; `digest` makes answers comparable; `machine` says where it ran; `memory`
measures how penstock's memory grows with the stream.
To add an engine: one module in `bench.engines`, and one line in `multiquery.CONTENDERS` or `packets.CONTENDERS`.
"""
