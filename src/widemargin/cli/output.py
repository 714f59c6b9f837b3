"""What commands print: tables for people, JSON for programs, errors without tracebacks."""

from __future__ import annotations

import errno
import functools
import json
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any

import typer

from widemargin.cli.arguments import UsageError
from widemargin.cli.words import Options
from widemargin.files import replacing
from widemargin.warning import RareClassWarning, UnscaledWarning
from widemargin.wording import speaking

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
show_traceback = False
command_line = ""  # of this run
running: str | None = None  # the command
options: Mapping[str, Container[str]] = {}  # of every command, by their long names


def exit_status_on_error(command: Callable) -> Callable:
    """A command whose errors become one line and an exit status."""

    @functools.wraps(command)
    def run(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            # They were matched by name when the file was read, or have none.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            warnings.showwarning = _only_once(UnscaledWarning, RareClassWarning)
            try:
                with speaking(Options(running, options)):
                    command(*args, **kwargs)
                sys.stdout.flush()
            except typer.Exit:
                raise
            except BrokenPipeError:  # whoever read our output has enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(FAILED) from None
            except KeyboardInterrupt:
                _say("interrupted.")
                raise typer.Exit(INTERRUPTED) from None
            except (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError) as e:
                if show_traceback:
                    traceback.print_exc()
                _say(f"error: {_message(e)}")
                raise typer.Exit(MISUSED if isinstance(e, UsageError) else FAILED) from None

    return run


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        # Whoever writes a file names it, so what is full without a name is the other end.
        nameless = "standard output" if error.errno in _FULL else "file"
        return f"{error.filename or nameless}: {error.strerror}."
    return str(error) or type(error).__name__


def _only_once(*tiresome: type[Warning]) -> Callable:
    """Says warnings, these once: every candidate or fold of a search has them."""
    said: set[type[Warning]] = set()

    def tell(message, category, *place) -> None:
        if category not in said:
            _warn(message, category, *place)
        said.update({category} & set(tiresome))

    return tell


def _warn(message, category, filename, lineno, file=None, line=None) -> None:
    _say(f"warning: {message}")


def _say(text: str) -> None:
    print("\n".join(map(printable, text.split("\n"))), file=sys.stderr)


def printable(text: str) -> str:
    r"""With control characters in words: a name from a file must not command the terminal.

    >>> printable("\x1b[2Jage\n")
    '\\x1b[2Jage\\n'
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def print_json(content: dict) -> None:
    print(json.dumps(_strict(content), indent=2, ensure_ascii=False))


def _strict(value: Any):
    """JSON has no NaN: what is not a number becomes null."""
    if isinstance(value, dict):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(v) for v in value]
    if hasattr(value, "tolist"):
        return _strict(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_facts(facts: dict[str, Any]) -> None:
    """Names and values, one per line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {shown(value)}")


def print_table(header: list[str], rows: list[list], title: str = "") -> None:
    """A table that also reads well in a file: rich only where there is a terminal."""
    header, *cells = [[shown(value) for value in row] for row in (header, *rows)]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title or None, title_justify="left")
        for k, name in enumerate(header):
            table.add_column(Text(name), justify="left" if k == 0 else "right")
        for row in cells:
            table.add_row(*map(Text, row))  # labels may look like markup
        Console().print(table)
        return
    if title:
        print(title)
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for first, *others in [header, *cells]:
        aligned = [f"{cell:>{w}}" for cell, w in zip(others, widths[1:], strict=True)]
        print("  ".join([f"{first:<{widths[0]}}", *aligned]).rstrip())


def shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value))


def or_stdout(out: Path | None):
    """Where to write: without a name, or to -, the standard output."""
    return sys.stdout if out is None or str(out) == "-" else out


def save_figure(figure, path: Path) -> None:
    """As the ending of the path says."""
    kind = path.suffix.lstrip(".").lower() or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise UsageError(f"{path}: matplotlib cannot draw {kind}; use .png, .svg or .pdf.")
    with replacing(path) as file:
        figure.savefig(file, format=kind)
