"""Files that a caller names or has opened, as buffered streams; errors that name the file."""

from __future__ import annotations

import io
import lzma
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO

from widemargin.budget import Budget, TooLargeError

HEAD = 1 << 16  # bytes of a file that can be looked at before it is read
BLOCK = 1 << 20  # bytes that are taken from a stream at a time
_LONGEST = 1000  # characters of a message
_PATIENCE = 1.0  # seconds, with threads that are about to end
DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)  # what reading damaged data raises


@contextmanager
def opened(path) -> Iterator[io.BufferedReader]:
    """The file, of which all of the head can be seen; it stays open if the caller opened it."""
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as file:
            yield file if file.seekable() else io.BufferedReader(RawStream(file), HEAD)
    elif isinstance(path, io.TextIOBase) or not hasattr(path, "read"):
        raise TypeError(f"path must be a path or a file opened as binary, got {path!r}.")
    else:
        yield io.BufferedReader(RawStream(path), HEAD)


@contextmanager
def naming_file(name: str, faults: tuple[type[Exception], ...], says: str = "{}") -> Iterator[None]:
    """Errors of a file's contents become a ValueError with its name; those of the disk stay."""
    try:
        yield
    except TooLargeError:  # which names it already
        raise
    except faults as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{name}: {says.format(one_line(error))}") from error


def one_line(said: object) -> str:
    """An error, or what a file calls its parts, without line breaks and not too long.

    >>> one_line(ValueError("two\\nlines"))
    'two lines'
    """
    text = " ".join(str(said).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def fill(file: IO[bytes], room: memoryview) -> int:
    """Read until there is no more room or no more file; returns how much."""
    got = 0
    while got < len(room):
        # A block at a time: some files make a copy of whatever they are asked for.
        n = file.readinto(room[got : got + BLOCK])  # type: ignore[attr-defined]
        if not n:
            break
        got += n
    return got


def whole(file: BinaryIO, budget: Budget) -> io.BytesIO:
    """All of a stream in memory, for those who have to jump about in it."""
    content = io.BytesIO()
    while block := file.read(BLOCK):
        budget.hold(len(block), "its contents take")
        content.write(block)
    content.seek(0)
    return content


class RawStream(io.RawIOBase):
    """Anything with ``read`` as a raw stream, which gives less than asked for only at its end."""

    def __init__(self, file):
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return hasattr(self._file, "seekable") and self._file.seekable()

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer) -> int:
        got = 0
        while got < len(buffer) and (content := self._file.read(len(buffer) - got)):
            buffer[got : got + len(content)] = content
            got += len(content)
        return got


class LentStream(RawStream):
    """A stream for another library, which knows when nobody there has it any more.

    Threads of pyarrow let go of a file some time after the table is made of it. One that needs
    Python for that while the process ends, as it does soon after an error, aborts it.
    """

    def __init__(self, file):
        super().__init__(file)
        self._returned = threading.Event()

    def lend(self) -> io.BufferedReader:
        """To be kept by nobody here: closed as soon as the last one lets go."""
        return io.BufferedReader(self)

    def close(self) -> None:
        super().close()
        self._returned.set()

    def wait(self) -> None:
        self._returned.wait(_PATIENCE)
