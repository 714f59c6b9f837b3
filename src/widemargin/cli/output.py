"""What commands print: tables, JSON, errors without tracebacks."""

from __future__ import annotations

import errno
import functools
import io
import json
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from widemargin.cli.options import Output
from widemargin.cli.words import UsageError, said
from widemargin.errors import IdentifierWarning, RareClassWarning, UnscaledWarning
from widemargin.files import replacing

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)
_EXPECTED = (
    ValueError,
    TypeError,
    OSError,
    ImportError,
    MemoryError,
    ArithmeticError,
    RuntimeError,
    SystemError,  # raised by compiled modules without memory
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
show_traceback = False
command_line = ""  # of this run


def exit_status_on_error(command: Callable) -> Callable:
    """Wrap a command: its errors become one line and an exit status."""

    @functools.wraps(command)
    def run(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            # Reading has matched the columns by name already.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            warnings.showwarning = _only_once(UnscaledWarning, RareClassWarning, IdentifierWarning)
            try:
                command(*args, **kwargs)
                sys.stdout.flush()
            except typer.Exit:
                raise
            except BrokenPipeError:  # the reader closed the pipe
                _give_up_output()
                raise typer.Exit(FAILED) from None
            except KeyboardInterrupt:
                _say("interrupted.")
                raise typer.Exit(INTERRUPTED) from None
            except _EXPECTED as e:
                if show_traceback:
                    traceback.print_exc()
                _say(printable(f"error: {_message(e)}"))  # one line, whatever a file's name is
                if isinstance(e, OSError) and e.errno in _LOST and e.filename is None:
                    _give_up_output()
                raise typer.Exit(MISUSED if isinstance(e, UsageError) else FAILED) from None

    return run


def _give_up_output() -> None:
    """Discard pending output, so that Python does not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        # Errors of files have a name; without one, the full device is the standard output.
        nameless = "standard output" if error.errno in _LOST else "file"
        return f"{os.fsdecode(error.filename or nameless)}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"out of memory. {error}".strip()
    if "start new thread" in str(error):
        return "no more threads: too little memory, or too many processes. Use --jobs 1."
    return said(error) or type(error).__name__


class _Messages(io.TextIOWrapper):
    """The standard error; ignores text that cannot be written."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def open_standard_streams() -> None:
    """Make closed or odd standard streams usable.

    One that is closed is opened, so that no other file has its number; using it is an error, but
    for messages, which are lost.  File names that are not text are printed as the bytes they are.
    """
    for number, name, how in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_WRONLY)  # the lowest number
            setattr(sys, name, open(number, how, closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")
    if sys.stderr is sys.__stderr__ or sys.__stderr__ is None:
        whole = open(sys.stderr.fileno(), "wb", 0, closefd=False)  # noqa: SIM115
        encoding = sys.stderr.encoding
        sys.stderr = _Messages(whole, encoding, "backslashreplace", write_through=True)


def _only_once(*repeated: type[Warning]) -> Callable:
    """Show warnings; ``repeated`` ones, which every fold of a search raises, once."""
    said: set[type[Warning]] = set()

    def tell(message, category, *where) -> None:
        if category not in said:
            _warn(message, category, *where)
        said.update({category} & set(repeated))

    return tell


def _warn(message, category, filename, lineno, file=None, line=None) -> None:
    _say(f"warning: {said(message)}")


def _say(text: str) -> None:
    print("\n".join(map(printable, text.split("\n"))), file=sys.stderr)


def printable(text: str) -> str:
    r"""Escape control characters, so that names in files cannot control the terminal.

    >>> printable("\x1b[2Jage\n")
    '\\x1b[2Jage\\n'
    """
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def print_json(content: dict) -> None:
    print(json.dumps(_strict(content), indent=2, ensure_ascii=False))


def _strict(value: Any):
    """Replace NaN and infinity, which strict JSON lacks, by null."""
    if isinstance(value, dict):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(v) for v in value]
    if hasattr(value, "tolist"):
        return _strict(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_result(facts: dict[str, Any], output: Output) -> None:
    """Print the facts as JSON or as lines; nothing with --quiet."""
    if output.as_json:
        print_json({name.replace(" ", "_"): value for name, value in facts.items()})
    elif not output.quiet:
        print_facts(facts)


def print_facts(facts: dict[str, Any]) -> None:
    """Print names and values, one per line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {shown(value)}")


def print_table(header: list[str], rows: list[list], title: str = "") -> None:
    """Print a table, by rich in a terminal and as aligned text elsewhere."""
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
    """Return the output to write to: the standard output without a name or for -."""
    return sys.stdout if out is None or str(out) == "-" else out


def save_figure(figure, path: Path) -> None:
    """Write the figure in the format of the path's ending."""
    kind = path.suffix.lstrip(".").lower() or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise UsageError(f"{path}: matplotlib cannot draw {kind}; use .png, .svg or .pdf.")
    with replacing(path) as file:
        figure.savefig(file, format=kind)
