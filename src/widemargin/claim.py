"""A folder that one writer at a time may have, in whatever process or thread."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Self

from widemargin.errors import Message
from widemargin.warning import warn_user

try:
    import fcntl
except ImportError:  # pragma: no cover  # no POSIX
    fcntl = None  # type: ignore[assignment]

CLAIM = "claim.lock"


class Claim:
    """The system's lock on a file in the folder, from now to `release`.

    It ends with the process, however that ends, so that a killed writer does not stand in its own
    way; the file stays, and says whose the folder was.  NFS passes the lock on to its server, so
    writers on two machines see each other.  Where there is no lock to be had (no POSIX, a file
    system or a folder that refuses) the writer goes on with a warning.

    Parameters
    ----------
    folder : path
    name, writer : str
        What messages call the folder (with its path), and whoever writes in it.
    """

    def __init__(self, folder: Path, name: str, writer: str):
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(folder / CLAIM, os.O_RDWR | os.O_CREAT, 0o666)
            self._lock(name, writer)
        except BlockingIOError:
            self.release()
            raise
        except OSError as error:
            self.release()
            message = (
                "{name} cannot be locked ({error}): make sure that no other {writer} uses it "
                "at the same time."
            )
            warn_user(Message(message, name=name, error=error, writer=writer))

    def _lock(self, name: str, writer: str) -> None:
        assert self._descriptor is not None
        if fcntl is None:
            raise OSError("this system has no flock")
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            owner = os.read(self._descriptor, 1000).decode(errors="replace") or "another process"
            message = (
                "{name} is in use by {owner}. Wait until that {writer} ends, or give this one "
                "another folder."
            )
            raise BlockingIOError(Message(message, name=name, owner=owner, writer=writer)) from None
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def release(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if fcntl is not None:  # at once, though a child that was forked may have the file open
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.release()

    __del__ = release  # after an interrupt that left nobody to do it
