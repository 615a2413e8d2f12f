"""Packets in trains, as the smap paper's traffic has them: 62 seconds of TCP, 860,000 packets of 2837 4-tuples.

That is about 303 packets a 4-tuple (Sec. 8.1), where captures that lie beside the project have 1 to 30, and no UDP. The
traffic was never published, so it is made: tuples with the printed numbers of groups (`streams.nested`), each a
connection that lives for some seconds and sends its packets in bursts, between those of all that live at the same time.

    connection   |---- ABABAB --- ABAB ------ ABABABAB ---|     BURST packets a burst on average, LIFE seconds
                        bursts, back to back

How long a burst is and how long a connection lives is not told. They are chosen so that l_m of ABCD is where Fig. 9 has
it, 20 to 80: that is the input of what follows, no finding.
"""

from __future__ import annotations

import numpy as np

from experiments.kit.streams import PRINTED, Codes, PaperStream, nested

PACKETS, SECONDS = 860_000, 62.0
BURST, LIFE = 8.0, 12.0
NAME = "trains"


def trains(
    rows: int = PACKETS, seed: int = 7, counts: tuple[int, ...] = PRINTED, burst: float = BURST, life: float = LIFE
) -> PaperStream:
    """Connections that start at any time, of exponential size and length; bursts of geometric length at any time in
    them."""
    tuples = nested(counts[-1], seed, counts).tuples
    rng = np.random.default_rng([seed, 1])
    packets = _sizes(rng, len(tuples), rows)
    length = np.minimum(rng.exponential(life, len(tuples)), SECONDS)
    start = rng.random(len(tuples)) * (SECONDS - length)
    connection = np.repeat(np.arange(len(tuples), dtype=np.int32), packets)
    first = np.append(True, connection[1:] != connection[:-1])
    bursts = np.cumsum(first | (rng.random(rows) < 1 / burst)) - 1
    of = connection[np.flatnonzero(np.diff(bursts, prepend=-1))]
    at = start[of] + rng.random(len(of)) * length[of]
    order = np.argsort(at[bursts], kind="stable")
    return PaperStream(NAME, tuples, np.ascontiguousarray(connection[order]))


def _sizes(rng: np.random.Generator, connections: int, packets: int) -> Codes:
    """Packets of each connection, one at least, `packets` in all."""
    share = rng.exponential(1.0, connections)
    edges = np.round(np.cumsum(share) / share.sum() * (packets - connections)).astype(np.int32)
    return np.asarray(np.diff(edges, prepend=0) + 1, np.int32)
