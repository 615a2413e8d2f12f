"""The log of a run as lines on standard error: for the command line, where it is asked for or there is no terminal.

| asked for | lines |
| --- | --- |
| `--log-level`, `--log-format` | every record of the level, as text with its time or as JSON |
| nothing, and no terminal | one for each batch, but not more than one a second, and always the last |
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from penstock.errors import ConfigError
from penstock.logs import ROOT

LEVELS = ("debug", "info", "warning", "error")
TEXT, JSON = "text", "json"
SECONDS = 1.0  # between lines that nobody asked for


class TextLines(logging.Formatter):
    """`2026-11-18T07:20:01.123Z info batch 3: …`"""

    def format(self, record: logging.LogRecord) -> str:
        return f"{_moment(record)} {record.levelname.lower()} {super().format(record)}"


class JsonLines(logging.Formatter):
    """One object per record: time, level, logger, event, message, and the facts of the event."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {"time": _moment(record), "level": record.levelname.lower(), "logger": record.name}
        told |= {"event": getattr(record, "event", None), "message": record.getMessage()}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told | getattr(record, "facts", {}), default=str)


class Seldom(logging.StreamHandler[TextIO]):
    """A line for each batch, unless there was one just before; `finish` writes the last one that was left out."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._at = -SECONDS
        self._left: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) != "batch":
            return
        if record.created - self._at < SECONDS:
            self._left = record
            return
        self._at, self._left = record.created, None
        super().emit(record)

    def finish(self) -> None:
        if self._left is not None:
            super().emit(self._left)


def check_logging(level: str | None, form: str | None) -> None:
    if level is not None and level.lower() not in LEVELS:
        raise ConfigError(f"--log-level {level} is not possible", f"use one of {', '.join(LEVELS)}")
    if form is not None and form.lower() not in (TEXT, JSON):
        raise ConfigError(f"--log-format {form} is not possible", f"use {TEXT} or {JSON}")


@contextmanager
def logged(stream: TextIO, level: str | None, form: str | None) -> Iterator[None]:
    """Write the log to a stream, as asked for; without a level and a format, a line for each batch."""
    seldom = level is None and form is None
    handler = Seldom(stream) if seldom else logging.StreamHandler(stream)
    if not seldom:
        handler.setFormatter(JsonLines() if (form or TEXT).lower() == JSON else TextLines())
    logger = logging.getLogger(ROOT)
    before = logger.level, logger.propagate
    logger.setLevel((level or "info").upper())
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
        if isinstance(handler, Seldom):
            handler.finish()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _moment(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"
