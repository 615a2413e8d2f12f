"""Groups of a coarser relation from those of a finer one, against plain Python over the same groups."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.kernels import inet
from penstock.kernels.dictionary import Dictionary
from penstock.logical.query import Query
from penstock.logical.resolve.app import resolve_app
from penstock.relations.component import Component, component_of
from penstock.relations.relation import Relation, relation_of
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.closer import closed_groups
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.merge import merge
from penstock.runtime.merge.once import MergedOnce, Rows, made_again
from penstock.runtime.merge.rolling.rollup import rolled_up
from penstock.runtime.merge.shares import Share, of_pass
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

STREAM = "CREATE STREAM s (ts TIMESTAMP, src INET, host STRING, v BIGINT) FROM 'csv:x';"
KEPT = "count(v) AS c, sum(v) AS t, min(host) AS least, max(v) AS most"
SOURCE, SOURCE6, NULL = component_of("value:src"), component_of("inet6:src"), component_of("null:src")
HOST = component_of("value:host")
PLACES = ["10.0.0.1", "10.0.1.2", "10.9.0.3", "192.168.1.1", "2001:db8::1", "2001:db8:1::2", "2001:db9::3", "fe80::1"]


def query(keys: str) -> Query:
    named = ", ".join(f"{key.strip()} AS k{i}" for i, key in enumerate(keys.split(",")))
    text = f"{STREAM} CREATE QUERY q AS SELECT {named}, {KEPT} FROM s [RANGE '1 minute'] GROUP BY {keys};"
    return resolve_app(text, "app.sql", lambda uri, options: ()).queries[0]


def relation(keys: str) -> Relation:
    """All take the same records, as relations that are rolled up do."""
    return replace(relation_of(query(keys)), choice=relation_of(query("src, host")).choice)


def words(strings: list[bytes]) -> Dictionary:
    made = Dictionary()
    data = np.frombuffer(b"".join(strings) or b"\0", np.uint8)
    made.intern(np.cumsum([0, *map(len, strings)]), data)
    return made


def random_groups(dice: random.Random) -> Groups:
    """Groups of src and host in some windows: different keys, some without an address."""
    keys = {
        (dice.randrange(3), dice.choice([*PLACES, None]), dice.choice(["a", "b", "é"]))
        for _ in range(dice.choice([0, 1, 30, 60]))
    }
    rows = dice.sample(sorted(keys, key=repr), len(keys))
    addresses = [None if place is None else ipaddress.ip_address(place) for _, place, _ in rows]
    sixes = [a.packed for a in dict.fromkeys(addresses) if a is not None and a.version == 6]
    hosts = ["a", "b", "é"]
    numbers = {
        SOURCE: [int(a) if a is not None and a.version == 4 else 0 for a in addresses],
        SOURCE6: [sixes.index(a.packed) + 1 if a is not None and a.version == 6 else 0 for a in addresses],
        NULL: [int(a is None) for a in addresses],
        HOST: [hosts.index(host) for *_, host in rows],
        HOST.null: [0 for _ in rows],
    }
    count = [dice.randint(1, 9) for _ in rows]
    states = {
        State("count", "v"): [dice.randint(0, n) for n in count],
        State("count", "host"): count,
        State("max", "v"): [dice.randint(-99, 99) for _ in rows],
        State("min", "host"): numbers[HOST],
        State("sum", "v"): [dice.randint(-(1 << 62), 1 << 62) for _ in rows],
    }
    return Groups(
        np.array([window for window, *_ in rows], np.int64),
        {name: np.array(values, np.int64) for name, values in numbers.items()},
        {SOURCE6: words(sixes), HOST: words([host.encode() for host in hosts])},
        np.array(count, np.int64),
        {state: (np.array(values, np.int64),) for state, values in states.items()},
    )


def plain(groups: Groups, lengths: tuple[int | None, ...]) -> dict[tuple, list]:
    """What the groups say of each window, prefixes of these lengths (None: the address) and host (where -1 is among
    the lengths)."""
    found: dict[tuple, list] = {}
    for i in range(len(groups)):
        key = [int(groups.panes[i])]
        for length in lengths:
            key.append(_text(groups, HOST, i) if length == -1 else _prefix(_address(groups, i), length))
        mine = found.setdefault(tuple(key), [0, 0, 0, [], []])
        mine[0] += int(groups.count[i])
        mine[1] += int(_state(groups, "count", "v", i))
        mine[2] += _sum(groups, i)
        mine[3].append(int(_state(groups, "max", "v", i)))
        mine[4].append(_text_of(groups, int(_state(groups, "min", "host", i))))
    return {key: [*mine[:3], max(mine[3]), min(mine[4])] for key, mine in found.items()}


def _state(groups: Groups, kind: str, column: str, i: int) -> int:
    known = groups.states.get(State(kind, column))
    return int(groups.count[i]) if known is None else int(known[0][i])


def _sum(groups: Groups, i: int) -> int:
    parts = groups.states[State("sum", "v")]
    if len(parts) == 1:
        return int(parts[0][i])
    return (int(parts[1][i]) << 64) + (int(parts[0][i]) & ((1 << 64) - 1))


def _address(groups: Groups, i: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if groups.components[NULL][i]:
        return None
    sixes = [name for name in groups.components if name.tag == "inet6"]
    name = max(sixes, key=lambda name: name.length % 200)  # the whole address, or the longest prefix
    code = int(groups.components[name][i])
    if code:
        return ipaddress.IPv6Address(groups.dictionaries[name].data[16 * (code - 1) : 16 * code].tobytes())
    return ipaddress.IPv4Address(int(groups.components[SOURCE][i]))


def _prefix(address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, length: int | None) -> str | None:
    if address is None:
        return None
    most = 32 if address.version == 4 else 128
    return str(ipaddress.ip_network((address, most if length is None else min(length, most)), strict=False))


def _text(groups: Groups, name: Component, i: int) -> str:
    return _text_of(groups, int(groups.components[name][i]))


def _text_of(groups: Groups, code: int) -> str:
    strings = groups.dictionaries[HOST]
    return strings.data[strings.offsets[code] : strings.offsets[code + 1]].tobytes().decode()


TARGETS: dict[str, tuple[int | None, ...]] = {
    "src/8": (8,), "src/24, host": (24, -1), "host": (-1,), "src": (None,), "src/16, src/48": (16, 48), "src/0": (0,),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_rolled_up_groups_say_the_same(seed: int) -> None:
    groups = random_groups(random.Random(seed))
    for keys, lengths in TARGETS.items():
        rolled, at = rolled_up(Rows(relation("src, host"), groups), relation(keys), True)
        assert at is not None
        assert np.bincount(at, groups.count).tolist() == rolled.count.tolist()
        found = plain(rolled, lengths)
        assert len(found) == len(rolled), (seed, keys)
        assert found == plain(groups, lengths), (seed, keys)


@pytest.mark.parametrize("seed", range(6))
def test_a_prefix_from_a_longer_prefix_is_the_same(seed: int) -> None:
    groups = random_groups(random.Random(seed))
    fine, cut = relation("src, host"), relation("src/56, host")
    long, _ = rolled_up(Rows(fine, groups), cut, False)
    for keys, lengths in (("src/8", (8,)), ("src/24, host", (24, -1))):
        assert plain(rolled_up(Rows(cut, long), relation(keys), False)[0], lengths) == plain(groups, lengths)


@pytest.mark.parametrize("seed", range(8))
def test_every_group_comes_in_one_pass(seed: int) -> None:
    """A window that does not fit is taken in passes by the keys of what is wanted: each group whole, in one of them."""
    dice = random.Random(seed)
    groups, fine, passes = random_groups(dice), relation("src, host"), dice.randint(2, 5)
    for keys, lengths in TARGETS.items():
        wanted, found = relation(keys), {}
        for turn in range(passes):
            once = _once(groups, fine, Share(turn, passes))
            one = plain(closed_groups(once, [StoredSource(fine)], wanted), lengths)
            assert not one.keys() & found.keys()
            found |= one
        assert found == plain(groups, lengths), (seed, keys)


@pytest.mark.parametrize("seed", range(4))
def test_coarse_ones_come_from_what_was_made_already(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    groups, fine = random_groups(random.Random(seed)), relation("src, host")
    once, merges = _once(groups, fine, Share()), []
    original = once._merge
    monkeypatch.setattr(once, "_merge", lambda source, share: merges.append(source) or original(source, share))
    for keys in ("src, host", "src/24, host", "src/16, host", "src/8", "host"):
        wanted = relation(keys)
        if keys != "src, host":
            closed_groups(once, [StoredSource(fine)], wanted)
    assert len(merges) == 1
    assert plain(closed_groups(once, [StoredSource(fine)], relation("src/8")), (8,)) == plain(groups, (8,))


@pytest.mark.parametrize("seed", range(6))
def test_what_several_versions_stored_is_one_result(seed: int) -> None:
    """Windows that were open when the stored relations changed."""
    dice = random.Random(seed)
    old, new = random_groups(dice), random_groups(dice)
    coarse, fine = relation("src/8"), relation("src, host")
    stored = {coarse.name: rolled_up(Rows(fine, old), coarse, False)[0], fine.name: new}
    once = MergedOnce(Share(), lambda source, _: stored[source.relation.name])
    sources = StoredSource(coarse, frozenset({0})), StoredSource(fine, frozenset({1}))
    got, wanted = plain(closed_groups(once, sources, coarse), (8,)), plain(old, (8,))
    for key, (count, some, total, most, least) in plain(new, (8,)).items():
        known = wanted.get(key)
        if known is None:
            wanted[key] = [count, some, total, most, least]
        else:
            wanted[key] = [
                count + known[0],
                some + known[1],
                total + known[2],
                max(most, known[3]),
                min(least, known[4]),
            ]
    assert got == wanted, seed


def _once(groups: Groups, fine: Relation, share: Share) -> MergedOnce:
    def merged(source: StoredSource, share: Share) -> Groups:
        pieces: Iterator[Piece] = iter([Piece(GroupRows(groups), groups.panes)] if len(groups) else [])
        chosen = [of_pass(fine, piece, share) if share.passes > 1 else piece for piece in pieces]
        return merge(fine, chosen, None, Vocabulary())

    return MergedOnce(share, merged)


def test_addresses_are_cut_as_networks_are() -> None:
    packed = [ipaddress.IPv6Address("2001:db8:ffff::1").packed]
    high, low = inet.from_network_order(np.frombuffer(packed[0], np.uint8))
    assert int(inet.cut(high, low, 32)[0][0]) == 0x20010DB8 << 32


def test_only_groups_that_others_are_made_of_are_kept() -> None:
    """Those of dozens of queries would not fit a task's memory."""
    fine, wide, narrow, host = relation("src, host"), relation("src/16"), relation("src/8"), relation("host")
    assert made_again((wide, host)) == frozenset()
    assert made_again((wide, narrow, host)) == {wide.name}
    assert made_again((host, host)) == {host.name}
    groups = random_groups(random.Random(1))
    for asked, kept in ([wide, host], 1), ([wide, narrow, host], 2):
        once = MergedOnce(Share(), lambda *_: groups, asked=asked)
        for one in asked:
            closed_groups(once, [StoredSource(fine)], one)
        assert [len(made) for made in once._made.values()] == [kept]
        assert plain(closed_groups(once, [StoredSource(fine)], narrow), (8,)) == plain(groups, (8,))
