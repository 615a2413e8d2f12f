"""Reference answers of the benchmark `packets`, by pyarrow's group_by over fields that penstock has not decoded.

The fields are those of one repetition (`benchmarks.data.traces`): tshark's of a capture, or what a generated trace was
made from. They are grouped as codes of small dictionaries; a value's text is only looked at once. `digest_answer` is
what contenders call on their results, with columns as they print them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address, ip_network
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.measure.digest import Words, digest_words, text_words
from benchmarks.packets.queries import OPENING, SIZE, PacketQuery, PacketScope

Numbers = NDArray[np.int64]
NOTHING = -1  # the code of NULL, and the number for it


@dataclass(frozen=True)
class ReferenceKey:
    """A grouping column: a code for each packet of a repetition, and what the codes stand for."""

    codes: Numbers
    texts: list[str | None]

    @cached_property
    def words(self) -> Words:
        return text_words(self.texts)


class Reference:
    """Answers over packets whose fields repeat every `len(fields)` packets, at these times."""

    def __init__(self, fields: pa.Table, times: Numbers) -> None:
        self.fields, self.times = fields.combine_chunks(), times
        self.keys: dict[str, ReferenceKey] = {}
        self.known: dict[tuple[str, PacketScope, int], str] = {}
        self.number = np.arange(len(times)) % len(fields)

    def digest(self, query: PacketQuery, scope: PacketScope, rows: int) -> str:
        """Digest of the answer over the first `rows` packets, as far as the scope goes; several contenders ask it."""
        asked = (query.name, scope, rows)
        if asked not in self.known:
            self.known[asked] = self._digest(query, scope, rows)
        return self.known[asked]

    def _digest(self, query: PacketQuery, scope: PacketScope, rows: int) -> str:
        micros = (query.seconds if scope.seconds is None else scope.seconds) * 1_000_000
        number = self.number[:rows]
        keep = self._chosen(query, scope)[number]
        number, times = number[keep], self.times[:rows][keep]
        windows = times // micros * micros if micros else np.zeros(len(times), np.int64)
        keys = [self._key(name) for name in query.keys]
        value = self._integers(query.value)
        table = pa.table(
            [key.codes[number] for key in keys] + [windows, pa.array(value[number], mask=value[number] == NOTHING)],
            names=[*query.names, "window", "value"],
        )
        groups = table.group_by([*query.names, "window"]).aggregate([([], "count_all"), ("value", "sum")])
        if query.top and scope.seconds is None:
            groups = _first(groups, query, keys[0])
        codes = [groups[name].to_numpy() for name in query.names]
        words = [key.words[found] for key, found in zip(keys, codes, strict=True)]
        total = groups["value_sum"] if scope.bytes else groups["count_all"]
        return _digest(words, groups["window"].to_numpy(), groups["count_all"], total)

    def _chosen(self, query: PacketQuery, scope: PacketScope) -> NDArray[np.bool_]:
        proto, flags, version = (self._integers(name) for name in ("proto", "tcp_flags", "version"))
        chosen = {
            "": np.ones(len(proto), bool),
            "proto = 6": proto == 6,
            OPENING: (proto == 6) & (flags != NOTHING) & (flags % 64 == 2),
        }[query.where]
        ports = np.isin(proto, (6, 17)) & (self._integers("dport") != NOTHING)
        among = {
            "all": np.ones(len(proto), bool),
            "ip": version != NOTHING,
            "ipv4": version == 4,
            "transport": ports,
            "ports": ports & (version == 4),
        }
        return np.asarray(chosen & among[scope.packets])

    def _integers(self, name: str) -> Numbers:
        return np.asarray(pc.fill_null(self.fields[name].cast(pa.int64()), NOTHING).to_numpy(), dtype=np.int64)

    def _key(self, name: str) -> ReferenceKey:
        if name not in self.keys:
            self.keys[name] = self._coded(name)
        return self.keys[name]

    def _coded(self, name: str) -> ReferenceKey:
        column, slash, length = name.partition("/")
        if slash:
            whole = self._key(column)
            texts = [None if text is None else network(text, int(length)) for text in whole.texts]
            distinct = list(dict.fromkeys(texts))
            place = {text: code for code, text in enumerate(distinct)}
            return ReferenceKey(np.array([place[text] for text in texts])[whole.codes], distinct)
        if name == SIZE:
            length_classes = self._integers("length") // 64 * 64
            return _coded(pa.array(length_classes))
        return _coded(self.fields[name].combine_chunks(), address=name in ("src", "dst"))


def _coded(values: pa.Array, address: bool = False) -> ReferenceKey:
    coded = values.dictionary_encode(null_encoding="encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    found = coded.dictionary.to_pylist()
    texts = [None if v is None else str(ip_address(v)) if address else str(v) for v in found]
    return ReferenceKey(coded.indices.to_numpy().astype(np.int64), texts)


def network(text: str, length: int) -> str:
    """The prefix of an address as penstock prints it."""
    return str(ip_network((text, min(length, 32) if "." in text else length), strict=False))


def _first(groups: pa.Table, query: PacketQuery, key: ReferenceKey) -> pa.Table:
    """The first rows of each window: most bytes, then the least key; NULL is the least of all."""
    place = {code: i for i, code in enumerate(sorted(range(len(key.texts)), key=lambda code: _rank(key.texts[code])))}
    rank = np.array([place[code] for code in range(len(key.texts))])[groups[query.names[0]].to_numpy()]
    windows = groups["window"].to_numpy()
    total = pc.fill_null(groups["value_sum"], NOTHING).to_numpy()
    order = np.lexsort((rank, -total, windows))
    sorted_windows = windows[order]
    begin = np.searchsorted(sorted_windows, sorted_windows)
    return groups.take(order[np.arange(len(order)) - begin < query.top])


def _rank(text: str | None) -> tuple[int, int]:
    if text is None:
        return (0, 0)
    address = ip_address(text)
    return (address.version, int(address))


def digest_answer(keys: Sequence[pa.ChunkedArray | pa.Array], windows: Numbers | None, packets: Any, total: Any) -> str:
    """Digest of a result: keys as text or numbers, window starts in microseconds (None: no windows), counts, sums."""
    words = []
    for column in keys:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode(null_encoding="encode")
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        words.append(text_words(coded.dictionary.to_pylist())[coded.indices.to_numpy()])
    return _digest(words, np.zeros(len(packets), np.int64) if windows is None else windows, packets, total)


def _digest(words: list[Words], windows: Numbers, packets: Any, total: Any) -> str:
    numbers = [pa.array(windows), packets, pc.fill_null(total, NOTHING)]
    plain = [np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False)) if isinstance(column, pa.Array)
             else column.cast(pa.int64()).to_numpy() for column in numbers]  # fmt: skip
    return str(digest_words([*words, *(column.astype(np.int64).view(np.uint64) for column in plain)]))
