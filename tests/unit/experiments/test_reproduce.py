"""`penstock reproduce`: what is printed and what is JSON; every experiment, in its short form, under `slow`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments import command
from experiments.kit.report import QUICK_ROWS, Claim, ExperimentSettings, Findings, Line, Panel, table
from penstock.app import cli
from penstock.errors import ConfigError

DOCUMENT = Path(__file__).parents[3] / "docs" / "reproduce.md"
FINDINGS = Findings(
    "a title",
    (Claim("it flies", "3", "2", False, "the wind"), Claim("it swims", "1", "1", True, "water")),
    (table("numbers", ("what", "how many"), [("birds", 1234.5), ("fish", 2)]),),
    (Panel("panel", "x", "y", (Line("birds", [1, 2], [3, 4]), Line("fish", [1, 2], [4, 3], dashed=True))),),
    ("a note",),
)


def reproduce(folder: Path, *names: str) -> tuple[list[Any], str]:
    said = io.StringIO()
    console = Console(file=said, width=200)
    settings = ExperimentSettings(QUICK_ROWS, quick=True)
    return list(command.run_experiments(names, settings, folder, console, console)), said.getvalue()


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment without work."""
    module = type(sys)("pretended")
    module.run = lambda settings, tell: FINDINGS  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pretended", module)
    monkeypatch.setattr(command, "EXPERIMENTS", {"pretended": ("pretended", "nothing")})


@pytest.mark.usefixtures("pretended")
def test_claims_that_fail_are_printed_as_such(tmp_path: Path) -> None:
    (result,), said = reproduce(tmp_path, "pretended")
    assert [line.split()[:3] for line in said.splitlines() if "it flies" in line] == [["FAILS", "it", "flies"]]
    assert [line.split()[:3] for line in said.splitlines() if "it swims" in line] == [["holds", "it", "swims"]]
    assert "the wind" in said
    assert "1,234" in said
    assert "1 of 2 claims hold" in said
    assert result["claims"][0] == {"claim": "it flies", "paper": "3", "ours": "2", "holds": False, "why": "the wind"}
    assert (tmp_path / "pretended.png").read_bytes().startswith(b"\x89PNG")
    assert result["picture"] == str(tmp_path / "pretended.png")


@pytest.mark.usefixtures("pretended")
def test_without_matplotlib_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "experiments.kit.pictures", None)
    (result,), said = reproduce(tmp_path, "pretended")
    assert result["picture"] is None
    assert said.count("matplotlib is not installed") == 1
    assert "pip install 'penstock[plot]'" in said
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_id_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown experiment 'smap-speed'"):
        reproduce(tmp_path, "smap-choice", "smap-speed")
    assert list(tmp_path.iterdir()) == []


def test_ids_are_those_that_others_rely_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", "reproduce", "--list"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    smap = ["collision", "allocation", "choice", "real", "misestimation", "peak-load", "epochs"]
    tree = ["eviction", "memory", "queries"]
    join = ["cost", "threeway", "showcases"]
    assert listed == [
        f"{paper}-{name}" for paper, names in (("smap", smap), ("tree", tree), ("join", join)) for name in names
    ]
    assert all(f"`{name}`" in DOCUMENT.read_text(encoding="utf-8") for name in listed)


def test_json_is_all_that_goes_to_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", "reproduce", "smap-choice", "--quick", "--json", "-o", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert_form(result, tmp_path)
    assert "claims hold" in err
    # What is known of inputs that agree with the printed numbers: most of them have the paper's configurations.
    answers = {claim["claim"]: claim["holds"] for claim in result["claims"]}
    assert answers["GCSL finds ABCD(AC(A C) BD(B D)), up to symmetry"]
    assert answers["GCSL finds ABCD(AB BCD(BC BD CD)) (flows)"]
    assert not answers["phantoms beat none, both with all memory well allocated"]


def assert_form(result: dict[str, Any], folder: Path) -> None:
    assert {"id", "claims", "picture", "seconds"} <= set(result)
    assert result["claims"]
    for claim in result["claims"]:
        assert list(claim) == ["claim", "paper", "ours", "holds", "why"]
        assert isinstance(claim["holds"], bool)
        assert all(isinstance(claim[key], str) and claim[key] for key in ("claim", "paper", "ours"))
        assert claim["holds"] or claim["why"]
    assert len({claim["claim"] for claim in result["claims"]}) == len(result["claims"])
    assert result["picture"] == str(folder / f"{result['id']}.png")
    assert Path(result["picture"]).stat().st_size > 10_000
    assert result["seconds"] >= 0
    assert result["tables"]


@pytest.mark.slow
def test_every_experiment(tmp_path: Path) -> None:
    results, _ = reproduce(tmp_path, *command.EXPERIMENTS)
    assert [result["id"] for result in results] == list(command.EXPERIMENTS)
    for result in results:
        json.dumps(result)
        assert_form(result, tmp_path)
    answers = {claim["claim"]: claim["holds"] for result in results for claim in result["claims"]}
    assert answers["Eq. 13 at g = b"]
    assert answers["no phantoms: √(g h) is optimal under x = μ g/b"]
    assert answers["flushes stay within E_p, E_e by the bound"]
    assert answers["Eq. 24: a relation above epochs of 2, 3, 5 is flushed 22 times in 30"]
    assert answers["Che's approximation tells what LRU tables pass on (generated)"]
    assert answers["Sec. III-C: the average chain has about 1.6 entries"]
    assert answers["Sec. III-D: naive evaluation takes queries × tuples"]
    assert answers["Theorem 3: on uniform data all or nothing is optimal"]
    assert answers["Theorem 1, Fig. 4: all plans have the same AS_out"]
    assert answers["Theorem 2, Fig. 5: all plans have the same AS_out"]
    assert not answers["Sec. VI-A: LRU closely matches perfect LFU"]
    assert not answers["Fig. 12: the line's average error is below 5 %"]
    assert not answers["Fig. 19: no phantoms costs more than 10 × EPES in many cases, all memory well allocated"]
