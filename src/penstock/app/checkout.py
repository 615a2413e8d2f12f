"""What a checkout has and an installed package has not: `benchmarks/` and `experiments/`, beside `src/`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import penstock
from penstock.errors import ConfigError


def open_checkout(package: str, command: str) -> None:
    """Make a package of the checkout importable, here and in processes that this one starts."""
    root = Path(penstock.__file__).resolve().parents[2]
    if not (root / package / "__init__.py").exists():
        raise ConfigError(
            f"penstock {command} needs a checkout: {package}/ is not part of the installed package",
            f"clone the repository, and there: make .venv/.installed && .venv/bin/penstock {command}",
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
