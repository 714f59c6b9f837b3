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
from collections.abc import Callable
from pathlib import Path
from typing import Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from widemargin.claim import CLAIM, Claim
from widemargin.digest import digest
from widemargin.errors import Message, Parameter
from widemargin.files import replacing
from widemargin.kernel.clusters import ClusterSolution
from widemargin.kernel.problem import Solution
from widemargin.warning import warn_user

MAGIC = b"widemargin checkpoint 4\n"
BEGUN = "-begun"
EVERY = 30.0  # seconds between two looks at a problem that is being solved
_DIGEST = 32


class NoCheckpoint:
    """What a checkpoint is when none was asked for."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        pass

    def load(self, name: str) -> None:
        return None

    def save(self, name: str, solved: list[ClusterSolution]) -> None:
        pass

    load_solution = load_begun = load

    def save_solution(self, name: str, solution: Solution) -> None:
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
        self.folder = Path(folder)
        self._called = Message("{folder}", folder=Parameter("checkpoint", str(folder)))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._refuse_other_files()
        self._claim = Claim(self.folder, self._called, "fit")
        try:
            self.seed = self._seed(identity, seed)
        except BaseException:
            self._claim.release()
            raise
        self._fit = digest(*sorted(identity.items()), self.seed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self._claim.release()

    def _refuse_other_files(self) -> None:
        """Before anything is written: a folder without a head must have nothing in it but ours."""
        names = {path.name for path in self.folder.iterdir() if path.suffix != ".tmp"}
        if names and not names & {"fit.json", CLAIM}:
            raise ValueError(
                Message(
                    "{it} is a folder with other files in it. Use an empty one.", it=self._called
                )
            )

    def _seed(self, identity: dict[str, str], seed: int) -> int:
        """That of the fit which the folder holds, if it is this one; of a new fit, the given."""
        head = self.folder / "fit.json"
        if not head.exists():
            text = json.dumps({**identity, "seed": seed}, indent=1)
            _write(head, text.encode())
            return seed
        stored = self._read_head(head)
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
        return int(stored["seed"])

    @staticmethod
    def _read_head(head: Path) -> dict:
        try:
            stored = json.loads(head.read_text())
            if not (isinstance(stored, dict) and isinstance(stored.get("seed"), int)):
                raise ValueError("no seed")
        except ValueError as error:
            raise ValueError(
                f"{str(head)!r} is not the head of a checkpoint ({error}). Delete the folder to "
                "start afresh."
            ) from None
        return stored

    # The variables of a cluster: per binary problem, their numbers, values, objective and gap.

    def load(self, name: str) -> list[ClusterSolution] | None:
        arrays = self._load(name)
        if arrays is None:
            return None
        solutions = []
        for k in range(len(arrays) // 3):
            dual, gap, n_iter, double = arrays[f"sums{k}"].tolist()
            variables, alpha = arrays[f"variables{k}"], arrays[f"alpha{k}"]
            sums = (dual, gap, int(n_iter), bool(double))
            solutions.append(ClusterSolution(variables, alpha, *sums))
        return solutions

    def save(self, name: str, solved: list[ClusterSolution]) -> None:
        arrays: dict[str, np.ndarray] = {}
        for k, s in enumerate(solved):
            sums = np.array([s.dual, s.gap, s.n_iter, s.double], dtype=float)
            arrays |= {f"variables{k}": s.variables, f"alpha{k}": s.alpha, f"sums{k}": sums}
        self._save(name, arrays)

    def load_solution(self, name: str) -> Solution | None:
        a = self._load(name)
        if a is None:
            return None
        primal, dual, n_iter, double = a["sums"].tolist()
        sums = (primal, dual, int(n_iter))
        return Solution(a["alpha"], *sums, double=bool(double), each=a.get("each"))

    def save_solution(self, name: str, s: Solution) -> None:
        sums = np.array([s.primal, s.dual, s.n_iter, s.double], dtype=float)
        each = {} if s.each is None else {"each": s.each}
        self._save(name, {"alpha": s.alpha, "sums": sums, **each})
        (self.folder / f"{name}{BEGUN}.part").unlink(missing_ok=True)

    def load_begun(self, name: str) -> np.ndarray | None:
        """The variables of a problem that was not solved to the end."""
        arrays = self._load(f"{name}{BEGUN}")
        return None if arrays is None else arrays["alpha"]

    def save_begun(self, name: str, alpha: np.ndarray) -> None:
        self._save(f"{name}{BEGUN}", {"alpha": alpha})

    def _load(self, name: str) -> dict | None:
        path = self.folder / f"{name}.part"
        if not path.exists():
            return None
        content = path.read_bytes()
        begin = len(MAGIC) + _DIGEST
        payload = content[begin:]
        try:
            if content[:begin] == MAGIC + self._digest(name, payload):
                return unpack(payload)
        except SafetensorError:
            pass
        warn_user(
            f"{str(path)!r} is truncated or damaged, or of another fit; this part is computed "
            "again."
        )
        return None

    def _save(self, name: str, arrays: dict) -> None:
        payload = pack({k: np.ascontiguousarray(v) for k, v in arrays.items()})
        try:
            _write(self.folder / f"{name}.part", MAGIC + self._digest(name, payload) + payload)
        except OSError as error:
            warn_user(f"The checkpoint of {name} could not be written ({error}); the fit goes on.")

    def _digest(self, name: str, payload: bytes) -> bytes:
        """Of a part: its content, what it is, and which fit and seed it belongs to."""
        key = digest(self._fit, name).encode()
        return hashlib.blake2b(payload, key=key, digest_size=_DIGEST).digest()


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


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
