"""The picture of a plan: where things stand, and that there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.monitor.analyze import measure
from penstock.sharing.explain import explain_plan
from penstock.sharing.plan import unshared_plan
from support.explained_plans import app, counted, shared_plan

pytest.importorskip("matplotlib")

import itertools

from penstock.app.pictures.plans import draw_plans, place

PLAN = shared_plan()
EXPLAINED = explain_plan(PLAN, 1_000_000, 32)


def test_queries_stand_side_by_side_below_their_tables() -> None:
    boxes = place(EXPLAINED["relations"])
    leaves = [box for box in boxes if box.relation["table"] == "exact"]
    assert len({box.y for box in leaves}) == 1
    across = sorted(leaves, key=lambda box: box.x)
    assert all(a.x + a.width / 2 < b.x - b.width / 2 for a, b in itertools.pairwise(across))
    for box in boxes:
        parent = box.relation["parent"]
        assert parent is None or boxes[parent].y + boxes[parent].height / 2 < box.y - box.height / 2
        assert box.x - box.width / 2 >= 0


def test_a_table_stands_above_the_middle_of_its_queries() -> None:
    boxes = {(box.relation["name"], box.relation["table"]): box for box in place(EXPLAINED["relations"])}
    below = [boxes[name, "exact"].x for name in ("talkers", "pairs", "nets")]
    assert boxes["dst.src", "direct"].x == pytest.approx(sum(below) / 3)
    assert boxes["nets", "direct"].x == boxes["nets", "exact"].x
    assert boxes["dst.src", "direct"].width > boxes["nets", "direct"].width


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_drawn(tmp_path: Path, ending: str) -> None:
    measured = explain_plan(PLAN, 200_000, 32, measured=measure(PLAN, [counted(200_000)]))
    bare = explain_plan(unshared_plan(app(), "flows"), None, 32)
    path = tmp_path / f"plan.{ending}"
    draw_plans(path, [EXPLAINED, measured, bare])
    content = path.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])
    if ending == "svg":
        drawn = content.decode()
        assert drawn.count("5,000 buckets") == 2
        assert drawn.count(">talkers<") == 3
