"""Write files atomically, in folders where no link is followed.

The package writes all files through a `Folder`: its own (stores, checkpoints) and those that a
caller names (models, tables, pages).
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self, TextIO

from widemargin.budget import Budget
from widemargin.errors import Message, warn_user

CLAIM = "claim.lock"
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp", re.DOTALL)
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # follow no link, never block
_CANNOT_LOCK = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOLCK, errno.EOPNOTSUPP)


class Folder:
    """A folder that is opened once; its files are named relative to it.

    Others may have put links, pipes and devices in the folder.  These are never read or written:
    in the place of a file of ours each is an error that names it.  ``make`` creates the folder if
    it does not exist.
    """

    def __init__(self, path: str | os.PathLike, *, make: bool = False):
        self.path, self._number, self._lock = Path(path), -1, -1
        if make:
            self.path.mkdir(parents=True, exist_ok=True)
        self._open()

    def _open(self) -> int:
        """Return the descriptor; a folder from another process is opened on first use."""
        if self._number < 0:
            how = getattr(os, "O_PATH", os.O_RDONLY)  # needs no permission to list
            self._number = os.open(self.path, how | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._number

    def __reduce__(self):
        return _elsewhere, (self.path,)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __str__(self) -> str:
        return str(self.path)

    __fspath__ = __str__

    def names(self) -> set[str]:
        """Return the names in it, without the lock and the temporary files of killed writers."""
        return {name for name in self._all() if name != CLAIM and not name.endswith(".tmp")}

    def _all(self) -> list[str]:
        listed = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._open())
        try:
            return os.listdir(listed)
        finally:
            os.close(listed)

    def has(self, name: str) -> bool:
        """Whether there is an entry with this name."""
        return self._mode(name) is not None

    def size(self, name: str) -> int:
        """Return the size of a plain file in bytes."""
        with naming(self / name):
            status = os.stat(name, dir_fd=self._open(), follow_symlinks=False)
        self._refuse(name, status.st_mode)
        return status.st_size

    def _mode(self, name: str) -> int | None:
        try:
            return os.stat(name, dir_fd=self._open(), follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def open(self, name: str) -> io.BufferedReader:
        """Open a plain file for reading."""
        return open(self._plain(name, os.O_RDONLY), "rb")

    def read(self, name: str, max_bytes: int | None = None) -> bytes:
        """Read a plain file, as far as a `Budget` allows its size."""
        with Budget(max_bytes, repr(str(self / name))) as budget, self.open(name) as file:
            budget.check(os.fstat(file.fileno()).st_size, "its contents take")
            return file.read()

    def _plain(self, name: str, how: int) -> int:
        """Open a file; refuse links, pipes and devices."""
        try:
            with naming(self / name):
                number = os.open(name, how | _SAFELY, 0o666, dir_fd=self._open())
        except OSError:
            self._refuse(name, self._mode(name))
            raise
        try:
            self._refuse(name, os.fstat(number).st_mode)
        except OSError:
            os.close(number)
            raise
        return number

    def _refuse(self, name: str, mode: int | None) -> None:
        """Raise the error for something other than a plain file."""
        if mode is None or stat.S_ISREG(mode):
            return
        kind = "a link" if stat.S_ISLNK(mode) else "a folder, a pipe or a device"
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EEXIST
        reason = f"It is {kind}, not a plain file, and is neither followed nor replaced"
        raise OSError(number, reason, str(self / name))

    @contextmanager
    def replacing(self, name: str, *, lasting: bool = True) -> Iterator[BinaryIO]:
        """Yield a file to write, which replaces ``name`` on success.

        On any failure, a crash or a full disk included, ``name`` stays as it was.  The permissions
        of an older file are kept.  ``lasting`` waits until the bytes are on the disk.
        """
        older = self._mode(name)
        self._refuse(name, older)
        temporary = f".{name[:40]}.{secrets.token_hex(8)}.tmp"  # names have at most 255 bytes
        folder, path = self._open(), self / name
        with naming(path, instead_of=temporary):
            number = os.open(
                temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFELY, 0o666, dir_fd=folder
            )
            try:
                with open(number, "wb") as file:
                    yield file
                    file.flush()
                    if lasting:
                        os.fsync(number)
                    if older is not None:
                        os.fchmod(number, stat.S_IMODE(older))
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                self.remove(temporary)
                raise

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), naming(self / name):
            os.unlink(name, dir_fd=self._open())

    # ---------------------------------------------------------------- one writer at a time

    def claim(self, called: str, writer: str) -> None:
        """Lock the folder for one writer, across processes and threads, until `close`.

        The lock is the system's, on a file that names the owner.  It ends with the process, so a
        killed writer never blocks the next one, which removes its temporary files.  NFS passes the
        lock to its server, so writers on two machines see each other.  If the file system or the
        folder does not support locks, the writer continues with a warning.  ``called`` and
        ``writer`` name folder and writer in messages.
        """
        try:
            self._lock = self._plain(CLAIM, os.O_RDWR | os.O_CREAT)
            if os.fstat(self._lock).st_nlink > 1:
                reason = "It is another file too (a hard link), which is not written to; remove it"
                raise OSError(errno.EEXIST, reason, str(self / CLAIM))
            self._take_lock(called, writer)
        except OSError as error:
            self._release()
            if error.errno not in _CANNOT_LOCK:
                raise
            reason = (
                "{called} cannot be locked ({error}): make sure that no other {writer} uses it at "
                "the same time."
            )
            warn_user(Message(reason, called=called, error=error, writer=writer))
            return
        for name in filter(_TEMPORARY.fullmatch, self._all()):
            self.remove(name)

    def _take_lock(self, called: str, writer: str) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            owner = os.read(self._lock, 1000).decode(errors="replace") or "another process"
            message = Message(
                "{called} is in use by {owner}. Wait until that {writer} ends, or give this one "
                "another folder.",
                called=called,
                owner=owner,
                writer=writer,
            )
            raise BlockingIOError(message) from None
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def _release(self) -> None:
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            with suppress(OSError):  # explicitly, because a forked child may have the file open
                fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def close(self) -> None:
        """Release the lock and the descriptor; the folder may be used again."""
        self._release()
        if self._number >= 0:
            number, self._number = self._number, -1
            os.close(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.close()


def _elsewhere(path: Path) -> Folder:
    """Return a folder in another process, which opens it on first use."""
    folder = Folder.__new__(Folder)
    folder.path, folder._number, folder._lock = path, -1, -1
    return folder


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """`Folder.replacing` of a path.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"all of it")
    ...     path.read_text(), len(list(Path(folder).iterdir()))
    ('all of it', 1)
    """
    path = Path(path)
    with naming(path, instead_of=path.parent):
        folder = Folder(path.parent)
    with folder, folder.replacing(path.name) as file:
        yield file


def open_plain(path: Path) -> io.BufferedReader:
    """`Folder.open` of a path."""
    with Folder(path.parent) as folder:
        return folder.open(path.name)


@contextmanager
def checking(path: object) -> Iterator[None]:
    """Turn errors in the contents of a file of ours into one that says it is damaged."""
    try:
        yield
    except (ValueError, TypeError, IndexError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{str(path)!r} is damaged: {reason}.") from None


@contextmanager
def naming(path: str | os.PathLike, instead_of: str | os.PathLike | None = None) -> Iterator[None]:
    """Put this path into system errors that name no file or a temporary one."""
    try:
        yield
    except OSError as error:
        without = (None, Path(path).name, None if instead_of is None else os.fspath(instead_of))
        if error.errno is None or error.filename not in without:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


@contextmanager
def text_output(out: str | os.PathLike | TextIO, errors: str = "strict") -> Iterator[TextIO]:
    """Yield a text file to write: an open file, a pipe or device, or a path, replaced atomically.

    ``errors`` is that of `open`, for characters that UTF-8 cannot encode.
    """
    if not isinstance(out, (str, os.PathLike)):
        yield out
    elif _is_device(out):
        with naming(out), open(out, "w", encoding="utf-8", errors=errors) as file:
            yield file
    else:
        with replacing(out) as whole:
            text = io.TextIOWrapper(whole, "utf-8", errors, newline="\n")
            yield text
            text.detach()  # which flushes it


def _is_device(path: str | os.PathLike) -> bool:
    """Whether the path is a pipe, a device or a link to an open file (/dev/stdout)."""
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return special or os.path.abspath(path).startswith(("/dev/", "/proc/"))
