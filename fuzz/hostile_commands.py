"""Hostile and special files as the arguments of every command: done, or an error in one line.

    python -m fuzz.hostile_commands --count 2000 --seed 1
    python -m fuzz.hostile_commands --seed 1 --only 4711

A case is a command whose input is a file of `hostile_files.py`, a valid one, or something that is
no plain file (a folder, a device, a pipe, a link to itself), under a name that may not be text; its
output goes where that is possible, or not.  Each runs in a fork, in its own folder, with little
memory.  A failure is a traceback, another exit status than 0, 1 and 2, an error of more than one
line, a hang, or a lost process.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fuzz.hostile_files import SEEDS, TURNS, hostile_file
from stress.children import in_child

SECONDS = 120.0  # of a case, on a busy machine
ADDRESSES = 3 << 30  # bytes beyond what the process has
LONGEST = 4000  # characters of an error
NAMES = (b"data", b"data.csv", b"data.npz", b"data.parquet", b"a b", b"\xff\xfe", b"-x", b"a\nb")
OUTPUTS = (b"out", b"out", b"out.npz", b"none/out", b"here", b"/dev/full", b"data")
COMMANDS: dict[str, Callable[[bytes, bytes], list[bytes]]] = {
    "train": lambda data, out: [data, out, b"-q"],
    "train -t rbf": lambda data, out: [data, out, b"-t", b"rbf", b"-q"],
    "store": lambda data, out: [data, out, b"-q"],
    "scale": lambda data, out: [data, out],
    "predict": lambda data, out: [data, b"ready", out],
    "predict model": lambda data, out: [b"good", data, out],
    "evaluate": lambda data, out: [data, b"ready"],
    "info": lambda data, out: [data],
    "export": lambda data, out: [data, out],
    "report": lambda data, out: [b"ready", data, b"-o", out],
}


def _special(name: bytes, rng: random.Random) -> None:
    """Put something in the place of a file."""
    kind = rng.choice(("nothing", "empty", "folder", "link", "loop", "device", "pipe"))
    if kind == "empty":
        Path(os.fsdecode(name)).touch()
    elif kind == "folder":
        os.mkdir(name)
    elif kind == "link":
        os.symlink(rng.choice((b"missing", b"good", b"/dev/null", b".")), name)
    elif kind == "loop":
        os.symlink(name, name)
    elif kind == "device":
        os.symlink(rng.choice((b"/dev/null", b"/dev/full")), name)
    elif kind == "pipe":
        os.mkfifo(name)
        if os.fork() == 0:  # somebody who writes to it, and goes; also where no command reads
            signal.alarm(int(SECONDS))
            with suppress(OSError), open(name, "wb") as pipe:
                pipe.write(rng.choice(SEEDS["svmlight"] + SEEDS["csv"] + [b""]))
            os._exit(0)


def case(seed: int, number: int) -> tuple[list[bytes], bytes | None, bytes, random.Random]:
    """The words of a command, the contents of its file (None: something special) and its name."""
    rng = random.Random(seed << 64 | number)
    command = rng.choice(list(COMMANDS))
    kind, content, _ = hostile_file(seed, number, tuple(k for k in TURNS if k != "store"))
    wants_model = command in ("predict model", "info", "export")
    if wants_model and kind not in ("model", "libsvm"):
        content = hostile_file(seed, number, ("model", "libsvm"))[1]
    elif rng.random() < 0.2:
        content = rng.choice(SEEDS[rng.choice(("svmlight", "csv", "npy", "npz", "arrow"))])
    name, out = rng.choice(NAMES), rng.choice(OUTPUTS)
    words = [command.split()[0].encode(), *COMMANDS[command](b"./" + name, out)]
    return words, None if rng.random() < 0.25 else content, name, rng


def run(words: list[bytes]) -> int:
    """Run a command in this process, a fork: its status; what it says goes to files."""
    from widemargin.cli.app import main

    for number, name in ((1, "said"), (2, "errors")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), number)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # noqa: SIM115
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.argv = ["widemargin", *map(os.fsdecode, words)]
    try:
        main()
    except SystemExit as ended:
        return 0 if ended.code is None else int(ended.code)
    return 0


def attempt(seed: int, number: int, ready: Path) -> tuple[str, str, str]:
    """The command, its outcome, and what is to be said of it."""
    words, content, name, rng = case(seed, number)
    folder, before = Path(tempfile.mkdtemp()), os.getcwd()
    os.chdir(folder)
    try:
        for file in ready.iterdir():
            shutil.copy(file, folder)
        (folder / "here").mkdir()
        if content is None:
            _special(name, rng)
        else:
            Path(os.fsdecode(name)).write_bytes(content)
        answer = in_child(lambda: run(words), SECONDS)
        said = Path("errors").read_text(errors="replace") if Path("errors").exists() else ""
    finally:
        os.chdir(before)
        shutil.rmtree(folder)
    return words[0].decode(), *_judged(answer, said)


def _judged(answer, said: str) -> tuple[str, str]:
    status, lines = answer.value, said.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if answer.how != "returned":
        return "failed", f"{answer.how}: {said[-500:]}"
    if "Traceback" in said or status not in (0, 1, 2):
        return "failed", f"status {status}: {said[-1500:]}"
    if status == 1 and not (len(errors) == 1 and lines[-1] == errors[0]):
        return "failed", f"not one line: {said[-1500:]}"
    if status == 1 and len(errors[0]) > LONGEST:
        return "failed", f"{len(errors[0])} characters"
    return ("done", "refused", "misused")[status], ""


def prepare(folder: Path) -> None:
    """Good data, and a model of it; everything that commands import."""
    import matplotlib
    import numpy as np
    from sklearn.datasets import dump_svmlight_file

    from widemargin import AdditiveSVC, save

    matplotlib.use("Agg")
    X = np.random.default_rng(0).random((30, 3))
    y = (X[:, 0] > 0.5).astype(int)
    dump_svmlight_file(X, y, str(folder / "good"), zero_based=False)
    save(AdditiveSVC().fit(X, y), folder / "ready")
    import widemargin.cli.app  # noqa: F401


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this one again")
    told = parser.parse_args()
    counts: Counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for number in range(told.count) if told.only is None else [told.only]:
            command, result, said = attempt(told.seed, number, Path(folder))
            counts[command, result] += 1
            if said or told.only is not None:
                words = case(told.seed, number)[0]
                print(f"--seed {told.seed} --only {number} {words}: {result} {said}", flush=True)
    outcomes = ("done", "refused", "misused", "failed")
    print("| command | cases | " + " | ".join(outcomes) + " |", "|---" * 6 + "|", sep="\n")
    for command in (*sorted({command for command, _ in counts}), "all"):
        of = [(c, o) for c, o in counts if command in (c, "all")]
        row = [sum(counts[key] for key in of if key[1] == outcome) for outcome in outcomes]
        print(f"| {command} | {sum(row):,} | " + " | ".join(f"{n:,}" for n in row) + " |")
    return int(any(n for (_, result), n in counts.items() if result == "failed"))


if __name__ == "__main__":
    sys.exit(main())
