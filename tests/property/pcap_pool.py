"""Packets decoded side by side with other bytes after them, and the contract of flags: properties of the decoder."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.kernels.packets.capture import PacketRecords
from penstock.kernels.packets.fields import take_service
from penstock.kernels.packets.layers import room
from penstock.kernels.packets.layout import END
from penstock.sources.base import BAD, FAULT, UNREADABLE
from penstock.sources.capture import source as pcap
from penstock.sources.capture.columns import COLUMNS, PacketBatch, Packets

Array = np.ndarray[Any, Any]
NAMES = list(COLUMNS)
HEADERS = 130  # bytes; most packets have theirs in fewer
GAP, POISONS = 96, (0xFF, 0x45)  # bytes after each packet
ALONE = int(os.environ.get("PENSTOCK_ALONE", "4"))  # packets of a pool that are also decoded alone


@dataclass
class Pool:
    """Packets of several files, each followed by bytes that are not its own."""

    packets: list[bytes] = field(default_factory=list)
    records: list[PacketRecords] = field(default_factory=list)

    def take(self, data: Array, records: PacketRecords, rng: np.random.Generator) -> None:
        """Half of the packets as they are, the others cut somewhere in their headers: by a snap length, or as sent."""
        known, count = copied(records), len(records.at)
        cut, sent = rng.random(count) < 0.5, rng.random(count) < 0.5
        known.captured = np.where(cut, rng.integers(0, np.minimum(known.captured, HEADERS) + 1), known.captured)
        known.captured = known.captured.astype(np.int32)
        known.length = np.where(cut & sent, known.captured, known.length)
        text = data.tobytes()
        places = zip(known.at.tolist(), known.captured.tolist(), strict=True)
        self.packets += [text[at : at + size] for at, size in places]
        self.records.append(known)

    def check(self, unwrap: int) -> None:
        """What is decoded does not depend on bytes after a packet's captured end; flags are as they should be."""
        if not self.packets:
            return
        data, records = poisoned(self.packets, self.records, POISONS)
        batch = decoded(data, records, unwrap)
        for name, found in raw(batch).items():
            third = len(found) // len(POISONS)
            first, *others = (found[at : at + third].tobytes() for at in range(0, len(found), third))
            assert all(first == other for other in others), f"{name} depends on what follows the packet"
        check_flags(batch.arrow())


def copied(records: PacketRecords) -> PacketRecords:
    same = PacketRecords(0)
    same.__dict__ = {name: column.copy() for name, column in records.__dict__.items()}
    return same


def poisoned(
    packets: list[bytes], parts: list[PacketRecords], poisons: Sequence[int], gap: int = GAP
) -> tuple[Array, PacketRecords]:
    """The packets one after the other with a gap after each; all of them once for each poison."""
    gaps = [bytes([byte]) * gap for byte in poisons]
    data = np.frombuffer(b"".join(gap.join(packets) + gap for gap in gaps), np.uint8)
    records = PacketRecords(0)
    records.__dict__ = {
        name: np.tile(np.concatenate([part.__dict__[name] for part in parts]), len(poisons))
        for name in records.__dict__
    }
    sizes = records.captured.astype(np.int64) + gap
    records.at = np.cumsum(sizes) - sizes
    return data, records


def decoded(data: Array, records: PacketRecords, unwrap: int) -> PacketBatch:
    count = len(records.at)
    piece, batch = Packets(data, records, room(count), count), PacketBatch(NAMES, count)
    batch.take(piece, pcap._locate(piece, unwrap) > 0)
    return batch


def raw(batch: PacketBatch) -> dict[str, Array]:
    """Values and marks of all columns, and the faults."""
    found = {"fault": batch._fault}
    for values in batch._values:
        found |= {values.name: values.out, f"{values.name} there": values.there}
        if values.six is not None:
            found |= {f"{values.name} six": values.six, f"{values.name} long": values.long}
    return found


def check_alone(pool: Pool, rng: random.Random, unwrap: int) -> None:
    """Some packets in buffers that end where they end: of use where bounds are checked."""
    before = 0
    for part in pool.records:
        row = rng.randrange(len(part.at))
        if len(pool.records) <= ALONE or rng.random() * len(pool.records) < ALONE:
            data, alone = poisoned([pool.packets[before + row]], [part.part(row, row + 1)], (0,), gap=0)
            decoded(data, alone, unwrap)
        before += len(part.at)


def check_flags(batch: pa.RecordBatch) -> None:
    """The contract of `sources.base` about flags."""
    flags = batch.schema.names[len(NAMES) :]
    assert batch.schema.names[: len(NAMES)] == NAMES
    assert all(column.null_count == 0 for column in batch.columns[len(NAMES) :] if pa.types.is_boolean(column.type))
    if not flags:
        return
    lost, flagged = ~nulls_of(batch, UNREADABLE), [flag for flag in flags if flag.startswith(BAD)]
    bad = np.array([flag_of(batch, flag) for flag in flagged])
    assert not lost.any() or flagged == [BAD + name for name in NAMES]
    assert (bad >= lost).all(), "a value of an unreadable record is not bad"
    assert bad.any(axis=1).all(), "a flag that says nothing"
    nulls = np.array([nulls_of(batch, flag.removeprefix(BAD)) for flag in flagged])
    assert (nulls >= bad).all(), "a value is bad and there"
    assert (~nulls_of(batch, FAULT) == (bad.any(axis=0) & ~lost)).all(), "a fault without a bad value, or no fault"
    assert set(flags) <= {FAULT, UNREADABLE, *flagged}


def nulls_of(batch: pa.RecordBatch, name: str) -> Array:
    if name not in batch.schema.names:
        return np.ones(batch.num_rows, bool)
    nulls: Array = batch.column(name).is_null().to_numpy(zero_copy_only=False)
    return nulls


def flag_of(batch: pa.RecordBatch, name: str) -> Array:
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, bool)
    values: Array = batch.column(name).to_numpy(zero_copy_only=False)
    return values


def require_checks() -> None:
    """Where bounds should be checked they are: by a read that lies outside."""
    layers = room(1)
    layers[:] = 0
    layers[0, END] = 100
    try:
        take_service(np.zeros(1, np.uint8), layers, 1, np.zeros(1, np.uint16), np.zeros(1, np.uint8))
    except IndexError:
        return
    raise AssertionError("bounds are not checked")
