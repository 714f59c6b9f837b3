"""Commands that are killed or interrupted at random moments: is anything lost, or half written?

    python -m stress.commands --kills 300 --interrupts 200 --write docs/stress.md

Every run is a process of the command line, ended by SIGKILL or SIGINT between its first import and
its end.  What it was to write is then absent, the older file, or the whole new one; and the same
command, called again, ends with what an undisturbed one has written and leaves nothing beside it.
Ctrl-C ends the run with the table of what has been done.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_digits

from stress.report import write_between
from widemargin import BlockStore, load
from widemargin.cli.datasets import is_store

BEGIN, END = "<!-- written by python -m stress.commands -->", "<!-- end of the commands -->"
X, Y = load_digits(return_X_y=True)


@dataclass(frozen=True)
class Command:
    """The words of a command, and what tells the content of the file that it writes."""

    words: list[str]
    target: str
    content: Callable[[Path], bytes]


def _decisions(path: Path) -> bytes:
    return load(path).decision_function(X[:50]).tobytes()


def _rows(path: Path) -> bytes:
    """Of a finished store; one that is not finished counts as absent."""
    if not is_store(path):
        return b""
    try:
        store = BlockStore(path)
    except ValueError as error:
        if "is not finished" in str(error):
            return b""
        raise
    store.verify()
    return store.codes.frequency(np.ones(store.shape[0])).tobytes()


SEED = ["--seed", "0", "-q"]
COMMANDS = {
    "train": Command(["train", "data", "model", *SEED], "model", _decisions),
    "train --checkpoint": Command(
        ["train", "data", "model", "--checkpoint", "fit", *SEED], "model", _decisions
    ),
    "train --memory-limit": Command(
        ["train", "data", "model", "-t", "chi2", "--memory-limit", "200kB", *SEED],
        "model",
        _decisions,
    ),
    "store": Command(["store", "data", "blocks", "-q"], "blocks", _rows),
    "predict": Command(["predict", "data", "ready", "out", "-q"], "out", Path.read_bytes),
}


class Runs:
    """Commands in folders of their own, each with the data and a model that is ready."""

    def __init__(self, root: Path, seed: int, names: Sequence[str] = tuple(COMMANDS)):
        self.root, self.random, self.names = root, random.Random(seed), names
        dump_svmlight_file(X, Y, str(root / "data"), zero_based=False)
        self._run(COMMANDS["train"], root)
        (root / "model").rename(root / "ready")
        self.expected, self.took = {}, {}
        for name in names:
            command, folder, started = COMMANDS[name], self._folder(), time.monotonic()
            self._run(command, folder)
            self.took[name] = time.monotonic() - started
            self.expected[name] = command.content(folder / command.target)
            shutil.rmtree(folder)

    def _folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self.root))
        for name in ("data", "ready"):
            (folder / name).hardlink_to(self.root / name)
        return folder

    def _run(self, command: Command, folder: Path) -> None:
        words = [sys.executable, "-m", "widemargin", *command.words]
        subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300)

    def disturbed(self, name: str, how: signal.Signals) -> str:
        """What went wrong, or nothing."""
        command, folder = COMMANDS[name], self._folder()
        words = [sys.executable, "-m", "widemargin", *command.words]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, cwd=folder, **pipes) as process:  # type: ignore[call-overload]
            time.sleep(self.random.uniform(0, 1.1) * self.took[name])
            process.send_signal(how)
            said = process.communicate(timeout=300)[1]
        if "Traceback" in said and not said.rstrip().endswith("KeyboardInterrupt"):
            return f"a traceback: {said[-300:]}"
        try:
            return self._looked_at(name, command, folder)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            shutil.rmtree(folder)

    def _looked_at(self, name: str, command: Command, folder: Path) -> str:
        """An interrupted fit leaves the model as far as it came, so that is only loaded."""
        target = folder / command.target
        if target.exists():
            command.content(target)
        if command.target == "blocks" and target.exists() and command.content(target):
            return "" if command.content(target) == self.expected[name] else "another store"
        self._run(command, folder)
        if command.content(target) != self.expected[name]:
            return "the same command, called again, has written something else"
        left = {path.name for path in folder.iterdir()} - {"data", "ready", command.target, "fit"}
        left = {name for name in left if not name.endswith(".tmp")}
        return f"left behind: {sorted(left)}" if left else ""


def _disturb(runs: Runs, kills: int, interrupts: int, cases: Counter, failed: Counter) -> None:
    """Kills and interrupts in random order, counted by command."""
    both = [signal.SIGKILL] * kills + [signal.SIGINT] * interrupts
    runs.random.shuffle(both)
    for number, how in enumerate(both):
        name = list(COMMANDS)[number % len(COMMANDS)]
        key = (name, "killed" if how == signal.SIGKILL else "interrupted")
        fault = runs.disturbed(name, how)
        cases[key] += 1
        failed[key] += bool(fault)
        if fault:
            print(*key, number, fault, sep=": ", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stress.commands")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--interrupts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="a document whose table to replace")
    told = parser.parse_args()
    cases: Counter = Counter()
    failed: Counter = Counter()
    try:
        with tempfile.TemporaryDirectory() as root:
            _disturb(Runs(Path(root), told.seed), told.kills, told.interrupts, cases, failed)
    except KeyboardInterrupt:
        print("Interrupted: the table is of what had been done.")
    lines = ["| command | was | cases | failed |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {how} | {n:,} | {failed[name, how]:,} |" for (name, how), n in cases.items()
    ]
    print(*lines, sep="\n")
    if told.write:
        write_between(told.write, BEGIN, END, f"seed {told.seed}", "\n".join(lines))
    return int(any(failed.values()))


if __name__ == "__main__":
    sys.exit(main())
