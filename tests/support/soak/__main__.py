"""`python -m support.soak`: run a soak and say what it found. Exit code 1 if something does not hold."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from support.soak import Soaked, soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m support.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--work", type=Path, help="keep checkpoint, results, logs and picture here; must not exist")
    parser.add_argument("--json", action="store_true", help="the report on stdout, everything else on stderr")
    given = parser.parse_args()
    say = partial(print, file=sys.stderr if given.json else sys.stdout, flush=True)
    work = given.work or Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    try:
        soaked = soak(work, given.minutes, given.seed, say)
        show(soaked, say)
        if given.json:
            print(json.dumps(soaked.as_dict()))
    finally:
        if given.work is None:
            shutil.rmtree(work)
    return 0 if soaked.holds else 1


def show(soaked: Soaked, say: partial[None]) -> None:
    width = max(len(finding.name) for finding in soaked.findings)
    for finding in soaked.findings:
        say(f"{'ok  ' if finding.holds else 'FAIL'}  {finding.name:{width}}  {finding.detail}")
    kills = ", ".join(f"{count} × {role}" for role, count in sorted(soaked.driven.kills.items()))
    say(f"{soaked.minutes:g} minutes, seed {soaked.seed}, killed {kills}: {'all holds' if soaked.holds else 'FAILED'}")


if __name__ == "__main__":
    sys.exit(main())
