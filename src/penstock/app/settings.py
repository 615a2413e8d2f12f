"""Settings of a run from flat keywords: known names, values of the right type, then `Planning` and `RunSettings`.

The types are those that the dataclasses declare. None means the default.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import Any

from penstock.app.sizes import sized
from penstock.errors import ConfigError
from penstock.logical.query import QuerySet
from penstock.runtime.settings import RunSettings, TaskSettings
from penstock.sharing.joins.asked import check_asked
from penstock.sharing.options import Planning
from penstock.triage.plan import Mode

TASK_SETTINGS = tuple(TaskSettings.__dataclass_fields__)
WORDS = {"int": "a whole number", "float": "a number", "bool": "True or False", "str": "text"}


def planning_of(given: Mapping[str, Any], app: QuerySet) -> tuple[Planning, dict[str, Any]]:
    """What the plans of an app are asked to be like, and the other settings."""
    rest = sized(given)
    asked = {name: rest.pop(name) for name in Planning.__dataclass_fields__ if name in rest}
    planning = Planning(**_typed(Planning, asked)).checked()
    check_asked(planning.joins, app)
    return planning, rest


def settings_of(checkpoint: Any, given: Mapping[str, Any]) -> RunSettings:
    """RunSettings with TaskSettings inside."""
    given = dict(given)
    task = _typed(TaskSettings, {name: given.pop(name) for name in TASK_SETTINGS if name in given})
    known = set(RunSettings.__dataclass_fields__) - {"task", "checkpoint", "planning"}
    for name in given:
        if name not in known:
            raise ConfigError(
                f"unknown setting '{name}'", f"settings are {', '.join(sorted(known | set(TASK_SETTINGS)))}"
            )
    run = _typed(RunSettings, {"checkpoint": checkpoint, **given})
    for name, value in {**run, **task}.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise ConfigError(f"{name} must be at least 1, not {value}")
    if run.get("overload", Mode.TRIAGE) not in tuple(Mode):
        raise ConfigError(f"unknown overload mode '{run['overload']}'", f"modes are {', '.join(Mode)}")
    if task.get("slots", 1) > 256:
        raise ConfigError(f"slots must be at most 256, not {task['slots']}")
    return RunSettings(task=TaskSettings(**task), **run)


def _typed(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """These values as the dataclass declares them, without those that are None."""
    fields = kind.__dataclass_fields__
    return {
        name: _as(name, value, fields[name].type.partition(" |")[0])
        for name, value in given.items()
        if value is not None
    }


def _as(name: str, value: Any, kind: str) -> Any:
    """The value, if it is of that kind: numbers of other libraries and paths are taken as well."""
    try:
        if kind == "str" and isinstance(value, str | os.PathLike):
            return os.fspath(value)
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind == "int" and not isinstance(value, bool):
            return operator.index(value)
        if kind == "float" and not isinstance(value, bool | str):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ConfigError(
        f"{name} must be {WORDS[kind]}, not {value!r}", f"{name} is a setting of App.start and App.explain"
    )
