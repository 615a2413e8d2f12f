"""What jobs of many batches hold: the same value wherever it comes to, made ready once, read once."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

from penstock.runtime.sent import REMEMBERED, Sent, received
from penstock.state.protocol import Clock

read: list[str] = []


@dataclass(frozen=True)
class Noted:
    """Notes whenever it is read."""

    name: str

    def __setstate__(self, state: dict[str, str]) -> None:
        self.__dict__.update(state)
        read.append(self.name)


def test_a_value_is_read_once_however_many_jobs_hold_it() -> None:
    read.clear()
    one, other = Sent(Noted("one")), Sent(Noted("other"))
    jobs = [pickle.loads(pickle.dumps((one, other, batch))) for batch in range(3)]
    assert [(job[0].value, job[1].value, job[2]) for job in jobs] == [
        (Noted("one"), Noted("other"), batch) for batch in range(3)
    ]
    assert sorted(read) == ["one", "other"]


def test_another_value_under_the_same_name_is_another() -> None:
    first = Clock(1, 2)
    changed = replace(first, speed=2.0)
    assert pickle.loads(pickle.dumps(Sent(first))).value == first
    assert pickle.loads(pickle.dumps(Sent(changed))).value == changed


def test_what_a_worker_remembers_has_a_bound_and_is_only_a_cache() -> None:
    sent = [pickle.dumps(Sent(Clock(wall, 0))) for wall in range(REMEMBERED + 10)]
    assert [pickle.loads(data).value.wall for data in sent] == list(range(REMEMBERED + 10))
    assert pickle.loads(sent[0]).value == Clock(0, 0)


def test_a_received_value_travels_on() -> None:
    once = pickle.loads(pickle.dumps(Sent(Clock(3, 4))))
    make, written = once.__reduce__()
    assert make is received
    assert make(*written).value == Clock(3, 4)
