"""Tries the wheel in empty environments: with the newest versions that pyproject.toml allows, and with the oldest.

`make wheel` runs it, and continuous integration with it. Both ends are set up and tried side by side, each in a folder
for temporary files, by `tests/wheel/smoke.py`. The oldest versions are the lower bounds themselves, so no bound is
written down that is not tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
NEWEST, OLDEST = "newest", "oldest"
NO_WHEELS = (3, 13)  # the oldest numpy has none for this Python and later ones


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-wheel-") as folder:
        wheel = built(Path(folder))
        check_files(wheel)
        ends = [NEWEST, OLDEST] if sys.version_info < NO_WHEELS else [NEWEST]
        with ThreadPoolExecutor(len(ends)) as pool:
            for line in pool.map(lambda end: tried(Path(folder), wheel, end), ends):
                print(line, flush=True)
        if OLDEST not in ends:
            print("oldest: not tried, they have no wheels for this Python; use Python 3.11 or 3.12")


def built(folder: Path) -> Path:
    """The wheel, of a copy: a folder `build` of an earlier time must not find its way into it."""
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.nbi", "*.nbc")
    shutil.copytree(ROOT / "src", source / "src", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run([sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source)])
    return next(folder.glob("*.whl"))


def check_files(wheel: Path) -> None:
    """Whatever stands in the package is in the wheel, data as well as modules."""
    kept = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "penstock").rglob("*") if is_part(path)
    }
    with zipfile.ZipFile(wheel) as opened:
        missing = sorted(kept - set(opened.namelist()))
    if missing:
        sys.exit(f"error: not in the wheel: {', '.join(missing)}\n  hint: name it in package-data of pyproject.toml")


def is_part(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".nbi", ".nbc", ".pyc")


def tried(folder: Path, wheel: Path, end: str) -> str:
    """Install the wheel into an empty environment and see that it works."""
    began, home = time.monotonic(), folder / end
    run([sys.executable, "-m", "venv", str(home)])
    python = str(home / "bin" / "python")
    install = [python, *PIP, "install"]
    if end == OLDEST:
        (folder / "oldest.txt").write_text("\n".join(lowest()))
        install += ["--constraint", str(folder / "oldest.txt")]
    run([*install, str(wheel)])
    if subprocess.run([python, "-m", "penstock.runtime.spark.java"], capture_output=True).returncode:
        run([*install, f"{wheel}[java]"])
    installed = time.monotonic()
    run([python, str(SMOKE)])
    versions = run(
        [python, "-c", "import pyspark, numpy; print(f'pyspark {pyspark.__version__}, numpy {numpy.__version__}')"]
    )
    return (
        f"{end}: {versions.strip()}; {installed - began:.0f} s to install, {time.monotonic() - installed:.0f} s to try"
    )


def lowest() -> list[str]:
    """`numpy>=2.0,<2.5` is `numpy==2.0`, of all dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [re.sub(r">=([\d.]+),<[\d.]+$", r"==\1", one) for one in project["dependencies"]]


def run(command: list[str]) -> str:
    """Run a command outside the checkout; its output is shown if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tempfile.gettempdir(), env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
