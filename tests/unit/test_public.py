"""What `import penstock` gives: everything public by name, and nothing heavy before it is used."""

from __future__ import annotations

import subprocess
import sys

import penstock as ps
from penstock import errors


def test_everything_public_is_listed_and_there() -> None:
    assert dir(ps) == sorted([*ps.__all__, "__version__"])
    found = {name: getattr(ps, name) for name in ps.__all__}
    assert found["QueryError"] is errors.QueryError
    assert all(kind.__module__.startswith("penstock.") for kind in found.values())
    raised = {name for name in vars(errors) if name.endswith("Error") and name in errors.__dict__}
    public = {name for name in raised if isinstance(vars(errors)[name], type)}
    assert {name for name in public if vars(errors)[name].__module__ == errors.__name__} <= set(ps.__all__)
    assert not hasattr(ps, "Nothing")


def test_importing_loads_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import penstock; dir(penstock)\n"
        "new = {name for name in set(sys.modules) - before if not name.startswith('_')}\n"
        "print(sorted(name for name in new if name.split('.')[0] not in ('penstock', 'importlib', 'typing')))\n"
        "print(sorted(name for name in new if name.startswith('penstock')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, own = done.stdout.splitlines()
    assert own == "['penstock']"
    assert not {"pyarrow", "numpy", "logging", "pyspark"} & set(loaded.strip("[]").replace("'", "").split(", "))


def test_a_star_brings_all() -> None:
    names: dict[str, object] = {}
    exec("from penstock import *", names)
    assert set(ps.__all__) <= names.keys()
