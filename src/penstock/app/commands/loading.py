"""The app that a command names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.app.commands.commands import errors
from penstock.errors import ConfigError, QueryError


def load_app(path: Path, variables: list[str] | None, master: str | None = None, conf: list[str] | None = None) -> Any:
    from penstock.app.api import App
    from penstock.logical.resolve.addresses import address_of
    from penstock.logical.resolve.unused import unused
    from penstock.runtime.spark.conf import parse_conf

    if address_of(str(path)) is not None:
        raise QueryError(
            f"{path} is data, and not an app", f"ask it at once: penstock query \"SELECT count(*) AS n FROM '{path}'\""
        )
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise QueryError(
            f"not UTF-8 text: byte {error.start}, in line {line}", "save it as UTF-8", file=str(path)
        ) from None
    except OSError as error:
        hint = "name the app's file in it" if path.is_dir() else "check the path: an app is a text file, like app.sql"
        raise QueryError(f"cannot read {path}: {error.strerror}", hint) from None
    pairs = {}
    for setting in variables or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {setting} is not of the form K=V", "write it like --set trace=flows.parquet")
        pairs[key] = value
    app = App(master=master, conf=parse_conf(conf or [])).sql(text, str(path), pairs)
    for sentence in unused(text, str(path), pairs, app.query_set(opened=False)):
        errors.print(f"warning: {sentence}", markup=False, soft_wrap=True)
    return app
