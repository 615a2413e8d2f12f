"""The command line. Exit codes: 0 done, 1 failed while running, 2 bad input or usage, 130 and 143 stopped by SIGINT and
SIGTERM before the sources ended; no tracebacks for users.

Commands are thin (`app.commands`): they parse options, call the API or a package's entry point, and print. Standard
output has the answer (with `--json` nothing else), standard error everything for watching.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import typer

from penstock.app.commands import watching
from penstock.app.commands.commands import app, errors
from penstock.app.commands.environment import taken
from penstock.app.commands.options import Version
from penstock.errors import ConfigError, PenstockError, RunError, why

# The modules of commands, which register them when they are loaded; those of every day first.
MODULES = {
    "query": "query",
    "run": "run",
    "check": "check",
    "explain": "explain",
    "state": "state",
    "generate": "generate",
    "prepare": "prepare",
    "bench": "checkout",
    "reproduce": "checkout",
}


UNQUOTED = "put quotes around the query: penstock query \"SELECT count(*) AS n FROM 'x.pcap'\""


def load_commands(arguments: Sequence[str]) -> None:
    """The command that is asked for; all of them for help, completion, and words that name none."""
    named = next((word for word in arguments if not word.startswith("-")), "")
    for module in [MODULES[named]] if named in MODULES else MODULES.values():
        import_module(f"penstock.app.commands.{module}")


@app.callback()
def options(version: Version = False) -> None:
    """Options of penstock itself."""


def program() -> None:
    """The process of a command, to its end. Python would take every module down one by one, a fifth of a second."""
    code, watching.leaving = 0, True
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    leave(code)


def leave(code: int) -> NoReturn:
    """End this process: what waits for its end is done, what was written is flushed, nothing else is."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # its reader is gone; it is closed; there is none
            code = code or 1
    os._exit(code)


def main() -> None:
    """Turns errors meant for users into one message and an exit code."""
    load_commands(sys.argv[1:])
    try:
        sys.exit(app(standalone_mode=False, prog_name="penstock"))
    except watching.Stopped as stopped:
        errors.print(str(stopped), markup=False, soft_wrap=True)
        sys.exit(stopped.code)
    except typer.TyperException as error:
        _misused(error)
    except RunError as error:
        _fail(error, 1)
    except PenstockError as error:
        _fail(error, 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except ConnectionError as error:
        from penstock.runtime.spark.gone import jvm_gone, tells_of_it

        _fail(jvm_gone() if tells_of_it(error) else RunError(f"{why(error)}", "run again"), 1)
    except OSError as error:  # of a folder that is full, gone or forbidden, where nothing nearer has said so
        _fail(RunError(f"{error.filename or 'a file'}: {why(error)}", "check that place, then run again"), 1)
    except Exception as error:
        if not type(error).__module__.startswith(("py4j.", "pyspark.")):
            raise  # a bug of ours: its traceback is wanted
        from penstock.runtime.spark.session import reason

        _fail(RunError(f"Spark failed: {reason(error)}", "restore what it names, then run again"), 1)


def _misused(error: typer.TyperException) -> None:
    """A command line that cannot be understood; without any command the help was printed."""
    fact = error.format_message().rstrip(".")
    if fact:
        command = getattr(getattr(error, "ctx", None), "command_path", "penstock")
        unquoted = command == "penstock query" and "extra argument" in fact
        hint = UNQUOTED if unquoted else f"see {command} --help"
        _fail(ConfigError(fact[0].lower() + fact[1:], hint), error.exit_code)
    sys.exit(error.exit_code)


def _fail(error: PenstockError, code: int) -> None:
    errors.print(f"error: {error}", markup=False, soft_wrap=True)
    if code == 2 and taken():
        errors.print(f"  note: from the environment: {', '.join(taken())}", markup=False, soft_wrap=True)
    sys.exit(code)


if __name__ == "__main__":
    program()
