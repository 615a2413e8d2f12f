"""Settings of runs from keywords: whatever is of the wrong kind is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.app.api import App
from penstock.app.settings import planning_of, settings_of
from penstock.errors import ConfigError
from penstock.logical.query import QuerySet

WRONG = [
    ({"batch_rows": "many"}, "batch_rows must be a whole number, not 'many'"),
    ({"batch_rows": 1.5}, "batch_rows must be a whole number, not 1.5"),
    ({"batch_rows": True}, "batch_rows must be a whole number, not True"),
    ({"parallelism": "two"}, "parallelism must be a whole number, not 'two'"),
    ({"task_memory": [1]}, "task_memory must be a size, not [1]"),
    ({"overwrite": "yes"}, "overwrite must be True or False, not 'yes'"),
    ({"output": 7}, "output must be text, not 7"),
    ({"until": None, "slots": "x"}, "slots must be a whole number, not 'x'"),
    ({"memory": "lots"}, "memory must be a size, not 'lots'"),
    ({"peak_load": "high"}, "peak_load must be a number, not 'high'"),
    ({"plan": 3}, "plan must be text, not 3"),
    ({"batch_rows": 0}, "batch_rows must be at least 1, not 0"),
    ({"speed": 9}, "unknown setting 'speed'"),
]


@pytest.mark.parametrize(("given", "fact"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_kinds(given: dict[str, Any], fact: str, tmp_path: Path) -> None:
    app = App(master="process").stream("s", "generate:uniform", delay="1 second", options={"rows": "10"})
    app.query("q", "SELECT count(*) AS n FROM s [RANGE '1 second']")
    for call in (app.explain, lambda **settings: app.start(str(tmp_path / "ckpt"), **settings)):
        with pytest.raises(ConfigError) as error:
            call(**given)
        assert error.value.fact == fact
    assert not (tmp_path / "ckpt").exists()


def test_a_checkpoint_of_the_wrong_kind() -> None:
    with pytest.raises(ConfigError, match="checkpoint must be text, not 5"):
        settings_of(5, {})


def test_kinds_of_other_libraries() -> None:
    planning, rest = planning_of(
        {"peak_load": np.float32(2.5), "memory": np.int32(4096), "batch_rows": np.int64(9)}, QuerySet((), ())
    )
    assert (planning.peak_load, planning.memory) == (2.5, 4096)
    made = settings_of(Path("ckpt"), {**rest, "output": Path("out"), "parallelism": None, "chunk_rows": 5})
    assert (made.checkpoint, made.output, made.batch_rows, made.task.chunk_rows) == ("ckpt", "out", 9, 5)
