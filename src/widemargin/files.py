"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when all went well.

    Whatever happens before that, a crash or a full disk included, leaves ``path`` as it was.  A
    link is followed, the permissions of an older file are kept, and what is no plain file (a
    folder, a device) is refused: it would be replaced by one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     with replacing(path) as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     path.read_text(), len(list(Path(folder).iterdir()))
    ('all of it', 1)
    """
    path = Path(os.path.realpath(path))
    older = path.stat().st_mode if path.exists() else None
    if older is not None and not stat.S_ISREG(older):
        kind = IsADirectoryError if stat.S_ISDIR(older) else OSError
        raise kind(f"{str(path)!r} is not a plain file and cannot be replaced by one.")
    unique = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name[:40]}.{unique}.tmp")  # names have at most 255 bytes
    try:
        temporary.touch()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    mode = temporary.stat().st_mode if older is None else older
    try:
        with naming(path, instead_of=temporary):
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
        if temporary.stat().st_mode != mode:  # the writer has put a file of its own there
            temporary.chmod(stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: str | os.PathLike, instead_of: Path | None = None) -> Iterator[None]:
    """Errors of the system that name no file, or only a temporary one, name this one."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(instead_of)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


@contextmanager
def text_output(out: str | os.PathLike | TextIO) -> Iterator[TextIO]:
    """A text file to write: an open one, a pipe or device as it is, a path replaced whole."""
    if not isinstance(out, (str, os.PathLike)):
        yield out
    elif os.path.exists(out) and not os.path.isfile(out) and not os.path.isdir(out):
        with naming(out), open(out, "w", encoding="utf-8") as file:
            yield file
    else:
        with replacing(out) as temporary, open(temporary, "w", encoding="utf-8") as file:
            yield file
