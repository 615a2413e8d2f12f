"""Unit costs of this machine: measured once, kept, and measured again where what was kept is of no use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from penstock.runtime.planning import join_costs
from penstock.runtime.profile import calibrate
from penstock.sharing.model.unit_costs import USUAL, Costs


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    calibrate.calibrated.cache_clear()
    yield
    calibrate.calibrated.cache_clear()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Costs]:
    """What was measured, one more for each time: slow in itself, so the costs are made up."""
    done: list[Costs] = []

    def measure() -> Costs:
        done.append(replace(USUAL, fold=2.0 + len(done)))
        return done[-1]

    monkeypatch.setattr(calibrate, "measured_apart", lambda: None)
    monkeypatch.setattr(calibrate, "measure", measure)
    return done


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "penstock"


def kept(cache: Path) -> Path:
    (path,) = cache.iterdir()
    return path


def test_measured_once(cache: Path, measured: list[Costs]) -> None:
    first = calibrate.calibrated()
    calibrate.calibrated.cache_clear()
    assert calibrate.calibrated() == first == measured[0]
    assert len(measured) == 1
    assert kept(cache).suffix == ".json"


def test_measured_again_where_asked(cache: Path, measured: list[Costs]) -> None:
    calibrate.calibrated()
    assert calibrate.calibrated(fresh=True) == measured[1]
    calibrate.calibrated.cache_clear()
    assert calibrate.calibrated() == measured[1]


def costs_without(name: str) -> str:
    return json.dumps({key: value for key, value in asdict(USUAL).items() if key != name})


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "5", "null", '{"probe": 3}', costs_without("fold"), costs_without("insert"),
        json.dumps(asdict(USUAL) | {"probe": []}), json.dumps(asdict(USUAL) | {"passing": float("nan")}),
        json.dumps(asdict(USUAL) | {"fold": -1}), json.dumps(asdict(USUAL) | {"probe": [[4, 1.0], [2, 1.0]]}),
        json.dumps(asdict(USUAL) | {"insert": [[1, 2, 3]]}), json.dumps(asdict(USUAL) | {"word": None}),
        costs_without("segment"), costs_without("finish"), json.dumps(asdict(USUAL) | {"merge": 3.0}),
        json.dumps(asdict(USUAL) | {"segment": {"row": 0.0, "column": 1.0}}),
    ],
)  # fmt: skip
def test_a_damaged_file_is_replaced(cache: Path, measured: list[Costs], text: str) -> None:
    calibrate.calibrated()
    kept(cache).write_text(text)
    calibrate.calibrated.cache_clear()
    assert calibrate.calibrated() == measured[1]
    calibrate.calibrated.cache_clear()
    assert calibrate.calibrated() == measured[1]


def test_bytes_that_are_no_text(cache: Path, measured: list[Costs]) -> None:
    calibrate.calibrated()
    kept(cache).write_bytes(b"\xff\xfe\x00")
    calibrate.calibrated.cache_clear()
    assert calibrate.calibrated() == measured[1]


def test_a_user_without_a_home(measured: list[Costs], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert calibrate.calibrated() == measured[0]


def test_a_folder_that_cannot_be_made(tmp_path: Path, measured: list[Costs], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert calibrate.calibrated() == measured[0]


def test_other_kernels_are_measured_anew(cache: Path, measured: list[Costs], monkeypatch: pytest.MonkeyPatch) -> None:
    calibrate.calibrated()
    monkeypatch.setattr(calibrate, "_content", lambda modules: "others")
    calibrate.calibrated.cache_clear()
    assert calibrate.calibrated() == measured[1]
    assert len(list(cache.iterdir())) == 2


def test_what_is_measured_is_there() -> None:
    """A module that was renamed would no longer count."""
    for name in (*calibrate.MEASURED, *join_costs.MEASURED):
        assert find_spec(f"penstock.{name}") is not None, name


def test_what_is_measured_makes_sense() -> None:
    """In a process of its own: positive, and a larger table never cheaper; no figure is compared with another run's."""
    found = calibrate.measured_apart()
    assert found is not None
    assert calibrate._sound(found)
    for curve in (found.probe, found.recent, found.insert, found.lone):
        assert [cost for _, cost in curve] == sorted(cost for _, cost in curve)


def test_where_no_process_can_be_started(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate.sys, "executable", str(cache / "nothing"))
    assert calibrate.measured_apart() is None
