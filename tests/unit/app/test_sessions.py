"""Whose Spark session an app runs in: what can be refused without Spark, and without starting one."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.app.api import App
from penstock.app.sessions import Sessions
from penstock.errors import ConfigError

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"conf": {"executor.memory": "4g"}}, "'executor.memory' is no Spark setting"),
    ({"conf": {"spark.executor.memory": ["4g"]}}, "spark.executor.memory is a list"),
    ({"conf": {"spark.executor.memory": None}}, "spark.executor.memory is a NoneType"),
    ({"conf": {"spark.driver.memory": "lots"}}, "spark.driver.memory=lots is no size"),
    ({"conf": {"spark.executor.cores": 0}}, "spark.executor.cores=0 is no count"),
    ({"conf": {"spark.master": "nonsense"}}, "'nonsense' is no Spark master"),
    ({"master": "local[2]", "conf": {"spark.master": "yarn"}}, "the master is given twice"),
    ({"master": "process", "conf": {"spark.ui.enabled": True}}, "no Spark in a run with master 'process'"),
    ({"spark": object()}, "spark is a object, not a SparkSession"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=[words for _, words in WRONG])
def test_refused_at_once(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        App(**given)


def test_the_master_as_far_as_it_is_known() -> None:
    assert Sessions(None, None, None).master is None
    assert Sessions(None, None, {"spark.master": "local[2]"}).master == "local[2]"
    assert Sessions(None, "spark://a:1", {"spark.master": "spark://a:1"}).master == "spark://a:1"
    without = Sessions(None, "process", None)
    assert (without.with_spark, without.master) == (False, None)
    with pytest.raises(ConfigError, match="no Spark in a run with master 'process'"):
        without.get()


def test_a_temporary_checkpoint_is_refused_where_workers_are_elsewhere() -> None:
    app = App(master="spark://127.0.0.1:1").stream("s", "generate:uniform", options={"rows": "10"})
    app.query("q", "SELECT count(*) AS n FROM s [RANGE '1 second']")
    with pytest.raises(ConfigError, match="no checkpoint, and a temporary folder"):
        app.start()
