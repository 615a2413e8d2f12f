"""Captured packets as streams of the experiments: A, B, C, D are source, destination, source port, destination port.

The paper used 62 seconds of TCP headers of a network server, which were never published. Captures beside the project
stand in for them, each said by name with its own counts; where there are none, a generated trace of flows does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data.traces import PLACE
from experiments.kit.report import ExperimentSettings, Tell
from experiments.kit.streams import PaperStream, of_rows
from penstock.errors import ConfigError
from penstock.sources.base import Source, whole
from penstock.sources.registry import open_source

COLUMNS = ["src", "dst", "sport", "dport"]
# Strongly clustered, clustered, hardly clustered.
KNOWN = ("modbus_scada_2015", "iot_sentinel_2016", "campus_dns_1min_2017")
GENERATED = "generated flows"
FLOW_OPTIONS = {"clients": "3000", "servers": "1000", "flow_length": "30"}


def captured_streams(settings: ExperimentSettings, tell: Tell) -> list[PaperStream]:
    """All captures that are here, the most clustered one first; without any the generated trace."""
    files = capture_files(settings)
    if not files:
        tell("generating flows, in place of captures")
        return [generated_flows(settings)]
    streams = []
    for path in files:
        tell(f"reading {path.name}")
        streams.append(stream_of(path.name.partition(".")[0], open_source(f"pcap:{path}", {})))
    return streams


def main_stream(settings: ExperimentSettings, tell: Tell) -> PaperStream:
    """The one stream that stands for the paper's real data."""
    return captured_streams(settings, tell)[0]


def capture_files(settings: ExperimentSettings) -> list[Path]:
    """The known ones in their order; in a folder that the user named, any others as well, and there must be some."""
    named = settings.captures is not None
    folder = settings.captures or PLACE
    if named and not folder.is_dir():
        raise ConfigError(f"no folder {folder}", "--captures names one with pcap files")
    if settings.quick and not named:
        return []
    here = [path for path in sorted(folder.glob("*.pcap*")) if path.is_file()] if folder.is_dir() else []
    known = [path for name in KNOWN for path in here if path.name.partition(".")[0] == name]
    if named and not here:
        raise ConfigError(f"no captures in {folder}", "put pcap files there, or leave --captures out")
    return [*known, *(path for path in here if path not in known)] if named else known


def generated_flows(settings: ExperimentSettings) -> PaperStream:
    rows = min(settings.rows, 400_000)
    source = open_source("generate:flows", {"rows": str(rows), "seed": str(settings.seed), **FLOW_OPTIONS})
    return stream_of(GENERATED, source)


def stream_of(name: str, source: Source) -> PaperStream:
    """Packets that have ports; others are left out."""
    kept = []
    for batch in source.read(whole(source), COLUMNS, 1 << 16):
        there = pc.and_kleene(batch["sport"].is_valid(), batch["dport"].is_valid())
        kept.append(batch.select(COLUMNS).filter(there))
    table = pa.Table.from_batches(kept).combine_chunks()
    return of_rows(name, np.stack([_numbers(table[column]) for column in COLUMNS], axis=1))


def _numbers(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Distinct values by number; of addresses, those of both versions."""
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    parts = array.flatten() if pa.types.is_struct(array.type) else [array]
    number = np.zeros(len(array), np.int64)
    for part in parts:
        codes = part.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        number = number * (int(codes.max(initial=-1)) + 2) + codes + 1
    return number
