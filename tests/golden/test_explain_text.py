"""Explanations of plans as people read them, against golden files. REWRITE=1 writes these anew; review the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.monitor.analyze import measure
from penstock.sharing.explain import Explained, Measured, explain_plan
from penstock.sharing.explain_text import explained_text
from penstock.sharing.joins.choice import ASKED, JoinChoice
from penstock.sharing.plan import unshared_plan
from support.explained_joins import chosen, joined_plan, measured_join
from support.explained_plans import app, closing, counted, shared_plan

FOLDER = Path(__file__).parent / "explain"
STORED_ONCE = """CREATE STREAM s (ts TIMESTAMP, src INET, v INT) FROM 'csv:x';
CREATE QUERY hosts AS SELECT src, count(*) AS n FROM s [RANGE '1 minute'] GROUP BY src;
CREATE QUERY nets AS SELECT src/24 AS net, count(*) AS n FROM s [RANGE '5 minutes' SLIDE '1 minute'] GROUP BY src/24;
CREATE QUERY busy AS SELECT src, count(*) AS m FROM s [RANGE '1 minute'] GROUP BY src HAVING count(*) > 9;
CREATE QUERY sums AS SELECT src/24 AS net, sum(v) AS t FROM s [RANGE '1 minute'] WHERE v > 3 GROUP BY src/24;
"""
SHARED = shared_plan()
CLOSING = [closing(80_000), closing(120_000), closing(2_000, 50.0)]
MEASURED = Measured(120_000, 2, {}, {}, None, {"j": measured_join()})
CASES: dict[str, list[Explained]] = {
    "shared": [explain_plan(SHARED, 1_000_000, 32)],
    "measured": [
        explain_plan(SHARED, 200_000, 32, "gc", measure(SHARED, [counted(80_000), counted(120_000)], None, CLOSING))
    ],
    "asked_for_none": [explain_plan(unshared_plan(app(), "flows"), 1_000_000, 32, "none")],
    "fronts_of_no_basis": [explain_plan(unshared_plan(app(), "flows", 65_536), None, 32, "none")],
    "nothing_known": [explain_plan(unshared_plan(app(), "flows"), None, 32)],
    "stored_once": [explain_plan(unshared_plan(resolve_app(STORED_ONCE, "app.sql", None), "s"), None, 32)],
    "join": [explain_plan(joined_plan(chosen()), None, 32)],
    "join_asked_for": [explain_plan(joined_plan(JoinChoice("j", ("A", "B"), (False, True), ASKED)), None, 32)],
    "join_measured": [explain_plan(joined_plan(chosen()), None, 32, measured=MEASURED)],
    "two_streams": [explain_plan(SHARED, 10, 32), explain_plan(unshared_plan(app(), "flows"), None, 32)],
}


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    said, expected = explained_text(CASES[name]) + "\n", FOLDER / f"{name}.txt"
    if os.environ.get("REWRITE"):
        expected.write_text(said, encoding="utf-8")
    assert said == expected.read_text(encoding="utf-8")


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)
