"""Finished parts of a fit on disk, so that a killed fit goes on where it was.

A checkpoint is a folder, which one fit at a time may use.  ``fit.json`` says which data, parameters
and version it belongs to; every finished cluster is one file that starts with a digest of the rest,
of the fit and of its seed.  The last pass, which takes longest, also leaves its variables behind
every now and then: a fit that begins with them ends within the same tolerance, if not at the same
bits.  Files are written under another name and renamed, so that they are
whole or absent.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from widemargin.budget import Budget
from widemargin.digest import digest
from widemargin.errors import Message, Parameter, warn_user
from widemargin.fields import Fields, strict_json
from widemargin.files import Folder
from widemargin.kernel.problem import Solution
from widemargin.kernel.problems import Variables

MAGIC = b"widemargin checkpoint 4\n"
_HEAD = "fit.json"
BEGUN = "-begun"
EVERY = 30.0  # seconds between two looks at a problem that is being solved
_DIGEST = 32
_LARGEST = 1e300  # objective, of which some can be added
T = TypeVar("T")


class NoCheckpoint:
    """What a checkpoint is when none was asked for."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        pass

    def load(self, name: str, of: Any) -> None:
        return None

    load_begun = load

    def save(self, name: str, solutions: list[Solution]) -> None:
        pass

    def save_begun(self, name: str, alpha: np.ndarray) -> None:
        pass


class Checkpoint:
    """Finished clusters and solutions in a folder that belongs to one fit, until `close`.

    Parameters
    ----------
    folder : path
        Created where it does not exist; refused, and left as it is, where it belongs to another
        fit or another process is at work in it.
    identity : dict
        What makes the fit what it is: digests of data, parameters and version, by name.
    seed : int
        Used, and kept, if the fit is new; `seed` is the one to go on with.
    """

    def __init__(self, folder, identity: dict[str, str], seed: int):
        self._called = Message("{folder}", folder=Parameter("checkpoint", str(folder)))
        self.folder = Folder(folder, make=True)
        try:
            self._refuse_other_files()
            self.folder.claim(self._called, "fit")
            self.seed = self._seed(identity, seed)
        except BaseException:
            self.folder.close()
            raise
        self._fit = digest(*sorted(identity.items()), self.seed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.folder.close()

    def _refuse_other_files(self) -> None:
        """Before anything is written: a folder without a head must have nothing in it but ours."""
        names = self.folder.names()
        if names and _HEAD not in names:
            raise ValueError(
                Message(
                    "{it} is a folder with other files in it. Use an empty one.", it=self._called
                )
            )

    def _seed(self, identity: dict[str, str], seed: int) -> int:
        """That of the fit which the folder holds, if it is this one; of a new fit, the given."""
        if not self.folder.has(_HEAD):
            text = json.dumps({**identity, "seed": seed}, indent=1)
            self._write(_HEAD, text.encode())
            return seed
        stored = self._read_head()
        other = sorted(k for k in identity if stored.get(k) != identity[k])
        if other:
            raise ValueError(
                Message(
                    "{it} belongs to a fit with other {what}. It was left untouched: use another "
                    "folder, or delete it to start afresh.",
                    it=self._called,
                    what=" and ".join(other),
                )
            )
        return stored["seed"]

    def _read_head(self) -> dict:
        name = str(self.folder / _HEAD)
        try:
            with Budget(None, repr(name)) as budget:
                stored = strict_json(self.folder.read(_HEAD), "it", budget)
            Fields(stored, name, "fit").integer("seed", high=2**63)
        except ValueError as error:
            raise ValueError(
                f"{name!r} is not the head of a checkpoint ({error}). Delete the folder to start "
                "afresh."
            ) from None
        return stored

    # What is loaded is held against the problems of the fit, whose variables it claims to be.

    def load(self, name: str, of: Callable[[], Sequence[Variables]]) -> list[Solution] | None:
        """The solutions of a task; None where it has none here.  ``of`` makes its problems."""

        def made(arrays: dict) -> list[Solution]:
            return [_solution(arrays, str(k), problem) for k, problem in enumerate(of())]

        return self._load(name, made)

    def save(self, name: str, solutions: list[Solution]) -> None:
        arrays: dict[str, np.ndarray] = {}
        for k, s in enumerate(solutions):
            sums = np.array([s.primal, s.dual, s.n_iter, s.double], dtype=float)
            arrays |= {f"alpha{k}": s.alpha, f"sums{k}": sums, f"offset{k}": s.offset}
            arrays |= {} if s.each is None else {f"each{k}": s.each}
        self._save(name, arrays)
        self.folder.remove(f"{name}{BEGUN}.part")

    def load_begun(self, name: str, problem: Variables) -> np.ndarray | None:
        """The variables of a problem that was not solved to the end."""
        return self._load(f"{name}{BEGUN}", lambda a: _check_alpha(a["alpha"], problem))

    def save_begun(self, name: str, alpha: np.ndarray) -> None:
        self._save(f"{name}{BEGUN}", {"alpha": alpha})

    def _load(self, name: str, made: Callable[[dict], T]) -> T | None:
        file = f"{name}.part"
        if not self.folder.has(file):
            return None
        content = self.folder.read(file)
        begin = len(MAGIC) + _DIGEST
        payload = content[begin:]
        try:
            if content[:begin] == MAGIC + self._digest(name, payload):
                return made(unpack(payload))
        except (SafetensorError, ValueError, TypeError, KeyError, OverflowError):
            pass
        warn_user(
            f"{str(self.folder / file)!r} is truncated or damaged, or of another fit; this part is "
            "computed again."
        )
        return None

    def _save(self, name: str, arrays: dict) -> None:
        payload = pack({k: np.ascontiguousarray(v) for k, v in arrays.items()})
        try:
            self._write(f"{name}.part", MAGIC + self._digest(name, payload) + payload)
        except OSError as error:
            warn_user(f"The checkpoint of {name} could not be written ({error}); the fit goes on.")

    def _write(self, file: str, content: bytes) -> None:
        with self.folder.replacing(file) as whole:
            whole.write(content)

    def _digest(self, name: str, payload: bytes) -> bytes:
        """Of a part: its content, what it is, and which fit and seed it belongs to."""
        key = digest(self._fit, name).encode()
        return hashlib.blake2b(payload, key=key, digest_size=_DIGEST).digest()


def _finite(sums: np.ndarray, *shape: int) -> np.ndarray:
    """Objectives and the like, of this shape."""
    numbers = sums.dtype == np.float64 and sums.shape == shape
    if not numbers or not np.all(np.abs(sums) <= _LARGEST):  # NaN is not
        raise ValueError("an objective that is not finite")
    return sums


def _solution(arrays: dict, k: str, problem: Variables) -> Solution:
    """A task's solution of a problem, checked against the problem."""
    primal, dual, n_iter, double = _finite(arrays["sums" + k], 4).tolist()
    alpha, offset = arrays["alpha" + k], arrays["offset" + k]
    n, each = len(problem.output), arrays.get("each" + k)
    if each is not None:
        _finite(each, n, 2)
    sums = (primal, dual, int(n_iter), _finite(offset, n))
    found = Solution(_check_alpha(alpha, problem), *sums, double=bool(double), each=each)
    _finite(np.array([found.relative_gap]), 1)
    return found


def _check_alpha(alpha: np.ndarray, problem: Variables) -> np.ndarray:
    """Variables that are within their bounds."""
    numbers = alpha.dtype == np.float64 and alpha.shape == problem.upper.shape
    if not numbers or not np.array_equal(problem.within(alpha), alpha):  # NaN is not equal
        raise ValueError("a variable out of its bounds")
    return alpha


class Snapshots:
    """Keeps the variables of a problem while it is solved, but not at every step."""

    def __init__(self, checkpoint: Checkpoint | NoCheckpoint, name: str):
        self._checkpoint, self._name = checkpoint, name
        self._next = time.monotonic() + EVERY

    def take(self, present: Callable[[], np.ndarray]) -> None:
        if time.monotonic() >= self._next:
            self._checkpoint.save_begun(self._name, present())
            self._next = time.monotonic() + EVERY


def found_in(folder) -> str | None:
    """What a fit will find in a folder, in words; None where there is nothing.

    Examples
    --------
    >>> found_in("no such folder")
    """
    parts = {path.stem for path in Path(folder).glob("*.part")}
    begun = {name for name in parts if name.endswith(BEGUN)}
    clusters = sum(name.startswith("level") for name in parts)
    solved = len(parts) - len(begun) - clusters
    kinds = (
        (clusters, "cluster", "solved"),
        (solved, "whole problem", "solved"),
        (len(begun), "whole problem", "begun"),
    )
    said = [f"{n} {what}{'s' * (n > 1)} {how}" for n, what, how in kinds if n]
    return ", ".join(said) or None
