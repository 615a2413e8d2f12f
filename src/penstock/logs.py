"""Logging by the standard library, under the logger `penstock`; nothing is shown unless a program asks for it.

    logging.basicConfig(level=logging.INFO)         all of it, as Python shows logs
    logging.getLogger("penstock.batch").disabled    the loggers below are named after events

| event | level | when |
| --- | --- | --- |
| `start`, `end` | info | a run begins; it has ended, or was stopped |
| `batch` | info | a batch is committed and published |
| `replan`, `compaction` | info | plans have changed; small segments were merged |
| `table` | info, warning | a table was read again; its new content was not taken |
| `promise` | warning | a query promises its results sooner than they can be there |
| `given_up` | warning | records of a live stream waited longer than they are kept |
| `failure` | error | a batch, or the run, failed |

A record has the attributes `event` and `facts` (a dict), for formatters that want more than a line.
"""

from __future__ import annotations

import logging

ROOT = "penstock"
logging.getLogger(ROOT).addHandler(logging.NullHandler())


def tell(event: str, text: str, level: int = logging.INFO, **facts: object) -> None:
    """Log an event: a line for people, and the facts in it."""
    logging.getLogger(f"{ROOT}.{event}").log(level, text, extra={"event": event, "facts": facts})
