"""The claims of `penstock reproduce --json` as Markdown, for documents: `python -m experiments.kit.summary FILE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def summary(results: Iterable[dict[str, Any]]) -> str:
    """A table of counts, then one of claims for each experiment.

    >>> claim = {"claim": "it flies", "paper": "3 | 4", "ours": "2", "holds": False, "why": "wind"}
    >>> print(summary([{"id": "birds", "claims": [claim], "seconds": 1.5}]))
    | experiment | claims | hold | seconds |
    | --- | --- | --- | --- |
    | `birds` | 1 | 0 | 1.5 |
    <BLANKLINE>
    ### birds
    <BLANKLINE>
    | | claim | paper | ours |
    | --- | --- | --- | --- |
    | **no** | it flies | 3 \\| 4 | 2 |
    """
    results = list(results)
    lines = ["| experiment | claims | hold | seconds |", "| --- | --- | --- | --- |"]
    for result in results:
        held = sum(claim["holds"] for claim in result["claims"])
        lines.append(f"| `{result['id']}` | {len(result['claims'])} | {held} | {result['seconds']} |")
    for result in results:
        lines += ["", f"### {result['id']}", "", "| | claim | paper | ours |", "| --- | --- | --- | --- |"]
        for claim in result["claims"]:
            cells = [claim[key].replace("|", "\\|") for key in ("claim", "paper", "ours")]
            lines.append(f"| {'yes' if claim['holds'] else '**no**'} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary(json.loads(line) for name in sys.argv[1:] for line in Path(name).read_text().splitlines()))
