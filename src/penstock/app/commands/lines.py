"""Whether a command shows a progress bar, lines of a log, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.app.commands.commands import errors


def check_asked(level: str | None, form: str | None) -> None:
    """Refuse a log that cannot be written, before anything else happens."""
    if level is not None or form is not None:
        from penstock.monitor.lines import check_logging

        check_logging(level, form)


@contextmanager
def showing(level: str | None, form: str | None, quiet: bool) -> Iterator[bool]:
    """Gives whether there is to be a bar: on a terminal, where nothing else was asked for."""
    asked = level is not None or form is not None
    if not asked and (quiet or errors.is_terminal):
        yield not quiet
        return
    from penstock.monitor.lines import logged

    with logged(sys.stderr, level, form):
        yield False


def only_json(form: str | None) -> bool:
    """Whether standard error is for machines: the last record has the account, and no table follows."""
    return form is not None and form.lower() == "json"
