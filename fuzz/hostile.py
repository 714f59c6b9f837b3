"""Millions of hostile files, read: data or an error in one line, within the memory that is allowed.

    python -m fuzz.hostile --count 1000000 --jobs 2 --seed 1
    python -m fuzz.hostile --seed 1 --only 4711 --save file   (that one file again)

Each worker is a process with a limit on its memory.  One that ends, or does not come back from a
file, is reported with the file's number and replaced.
"""

import argparse
import io
import multiprocessing as mp
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from ctypes import c_int64
from pathlib import Path

import numpy as np
import pyarrow as pa
from fuzz import hostile_folders
from fuzz.fuzz_model import ROWS as MODEL_ROWS
from fuzz.hostile_files import KINDS, SEEDS, TURNS, hostile_file, kind_of

from widemargin import load
from widemargin.additive import manifest
from widemargin.data import read, stream, stream_svmlight, svmlight, table_files
from widemargin.data.ranges import read_range
from widemargin.errors import TooLargeError
from widemargin.libsvm.predictors import ForeignClassifier

SOME = np.array([[0.5, 0.0, 2.0, 1.0], [0.0, 1.0, 0.25, 0.0]])  # rows
MAX_BYTES = 4 << 20
BLOCKS = 48 << 20  # bytes beyond it: blocks of text, threads, memory that is not given back at once
ADDRESSES = 3 << 30  # bytes beyond what a worker has when it begins
LONGEST = 20.0  # seconds that a file may take, on a busy machine
MESSAGE = 2000  # characters
OUTCOMES = ("read", "refused", "too large", "failed")
STRIDE = 1000  # files that a worker takes at a time
TOGETHER = 40  # files after which its memory is looked at


class Fault(Exception):  # noqa: N818
    """What must not happen."""


def outcome(kind: str, content: bytes, rng, path: str) -> str:
    """What became of a file; every other exception than those allowed comes through."""
    with open(path, "wb") as file:
        file.write(content)
    try:
        if kind in hostile_folders.KINDS:
            path = "/dev/shm/forged-"
            hostile_folders.use(kind, content, rng, MAX_BYTES)
        elif kind in ("model", "libsvm"):
            _predict(load(path, max_bytes=MAX_BYTES))
        elif kind == "range":
            read_range(path, max_bytes=MAX_BYTES).scaled(SOME, 1)
        elif kind == "svmlight" and rng.random() < 0.3:
            for block in stream_svmlight(
                io.BytesIO(content), n_features=9, n_jobs=1, name=path, max_bytes=MAX_BYTES
            ):
                _check(block)
        else:
            options = rng.choice(({}, {"label": False}, {"label": 0}, {"label": "label"}))
            if options and kind in ("npz", "svmlight"):
                options = {"split": "train"} if kind == "npz" else {"n_features": 9}
            if rng.random() < 0.3:
                for block in stream(path, max_bytes=MAX_BYTES, n_jobs=1, **options):
                    _check(block)
            else:
                _check(read(path, max_bytes=MAX_BYTES, n_jobs=1, **options))
    except (ValueError, OSError) as error:
        said = str(error)
        if path not in said or "\n" in said or len(said) > MESSAGE:
            raise Fault(f"not one line that names the file: {said[:MESSAGE]!r}") from error
        return "too large" if isinstance(error, TooLargeError) else "refused"
    return "read"


def _check(data) -> None:
    """What compiled code may rely on."""
    n, d = data.X.shape
    if n == 0 or d == 0 or (data.y is not None and data.y.shape != (n,)):
        raise Fault(f"X of {data.X.shape}, y of {data.y.shape}")
    if hasattr(data.X, "indptr"):
        data.X.check_format(full_check=True)


def _predict(model) -> None:
    if isinstance(model, ForeignClassifier):
        with suppress(ValueError):
            model.predict(SOME)
            model.decision_function(SOME)
        return
    rows = [X for X in MODEL_ROWS if X.shape[1] == model.n_features_in_]
    if not rows or not hasattr(model, "predict"):
        return
    with suppress(ValueError):  # of rows that the changed numbers do not fit
        model.decision_function(rows[0])


# ------------------------------------------------------------------ one process


class Board:
    """What workers tell, in memory that outlives them: where each is, and counts."""

    def __init__(self, jobs: int):
        shared = mp.get_context("spawn")
        self.next = shared.Value(c_int64, 0)
        self.at = shared.RawArray(c_int64, [-1] * jobs)  # the file that a worker has in hand
        self.left = shared.RawArray(c_int64, 2 * jobs)  # the range of files it has taken
        self.counts = shared.RawArray(c_int64, len(KINDS) * len(OUTCOMES) * jobs)

    def taken(self, worker: int, count: int) -> Iterator[int]:
        """Numbers of files: first those that a worker before this one has left over."""
        while True:
            begin, end = self.left[2 * worker : 2 * worker + 2]
            if begin == end:
                with self.next.get_lock():
                    begin = self.next.value
                    end = self.next.value = min(begin + STRIDE, count)
                self.left[2 * worker + 1] = end
            if begin == end:
                return
            for number in range(begin, end):
                self.left[2 * worker] = number + 1
                self.at[worker] = number
                yield number

    def add(self, worker: int, kind: str, result: str) -> None:
        at = KINDS.index(kind) * len(OUTCOMES) + OUTCOMES.index(result)
        self.counts[worker * len(KINDS) * len(OUTCOMES) + at] += 1

    def table(self) -> np.ndarray:
        return np.array(self.counts).reshape(-1, len(KINDS), len(OUTCOMES)).sum(axis=0)


def warm_up(path: str) -> None:
    """Import and allocate what reading takes, so that what comes after is the files' doing."""
    quiet()
    for kind, contents in SEEDS.items():
        for content in contents:
            _, _, rng = hostile_file(0, 0)
            outcome(kind, content, rng, path)


def quiet() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # Buffers of full size would take longer than any of the files.
    svmlight.PART = table_files.BLOCK = 1 << 14
    manifest._AT_LEAST = MAX_BYTES


def limit_memory() -> None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESSES, used + ADDRESSES))


class Peak:
    """How much more memory than before was in use at any time since."""

    def __init__(self) -> None:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # forgets the peak
        self.before = self._now()

    @staticmethod
    def _now() -> int:
        with open("/proc/self/status") as file:  # getrusage may know of a time before
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))

    @property
    def grown(self) -> int:
        return self._now() - self.before


def attempt(
    seed: int, number: int, path: str, turns: tuple[str, ...] = TURNS
) -> tuple[str, str, str]:
    """Kind and outcome of a file, and what is to be said of it."""
    kind, content, rng = hostile_file(seed, number, turns)
    started = time.monotonic()
    try:
        result = outcome(kind, content, rng, path)
    except Exception as error:
        return kind, "failed", "".join(traceback.format_exception(error)).strip()
    seconds = time.monotonic() - started
    if seconds > LONGEST:
        return kind, "failed", f"{seconds:.0f} s for a file of {len(content)} bytes"
    return kind, result, ""


def large(
    seed: int, numbers: list[int], path: str, turns: tuple[str, ...] = TURNS
) -> Iterator[tuple[int, str, str]]:
    """Those of some files that take too much memory, and not only when they are made.

    To ask after every file would take too long.
    """
    for number in numbers:
        peak = Peak()
        kind, _, _ = attempt(seed, number, path, turns)
        if peak.grown > MAX_BYTES + BLOCKS:
            yield number, kind, f"{peak.grown / 1e6:.0f} MB"


def work(worker: int, board: Board, seed: int, count: int, turns: tuple[str, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that is for whoever has started it
    path = f"/proc/self/fd/{os.memfd_create('hostile')}"
    warm_up(path)
    limit_memory()
    numbers, peak = [], Peak()
    for number in board.taken(worker, count):
        kind, result, said = attempt(seed, number, path, turns)
        board.add(worker, kind, result)
        if said:
            print(_report(seed, number, kind, said), flush=True)
        numbers.append(number)
        if len(numbers) < TOGETHER and number != count - 1:
            continue
        if peak.grown > MAX_BYTES + BLOCKS:
            for which, kind, said in large(seed, numbers, path, turns):
                board.add(worker, kind, "failed")
                print(_report(seed, which, kind, said), flush=True)
        numbers, peak = [], Peak()


def _report(seed: int, number: int, kind: str, said: str) -> str:
    return f"FAILED: --seed {seed} --only {number} ({kind}): {said}\n"


# ------------------------------------------------------------------ all of them


def run(count: int, jobs: int, seed: int, turns: tuple[str, ...] = TURNS) -> np.ndarray:
    """Read so many files, or until Ctrl-C; how many of each kind had which outcome."""
    board, started = Board(jobs), time.monotonic()
    workers = [Worker(k, board, seed, count, turns) for k in range(jobs)]
    told = started
    try:
        while sum(worker.looked_after() for worker in workers) < jobs:
            time.sleep(0.2)
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{board.table().sum()} files, {told - started:.0f} s", flush=True)
    except KeyboardInterrupt:
        for worker in workers:
            worker.process.terminate()
    seconds = time.monotonic() - started
    print(lines_of(board.table()))
    print(f"\n{seconds:.0f} s, {board.table().sum() / seconds:,.0f} files per second")
    return board.table()


class Worker:
    """A process that reads files, and another in its place when it ends or hangs."""

    def __init__(self, number: int, board: Board, seed: int, count: int, turns: tuple[str, ...]):
        self.number, self.board, self.seed, self.count = number, board, seed, count
        self.turns = turns
        self._start()

    def _start(self) -> None:
        self.at, self.since = -1, time.monotonic()
        self.board.at[self.number] = -1
        arguments = (self.number, self.board, self.seed, self.count, self.turns)
        self.process = mp.get_context("spawn").Process(target=work, args=arguments)
        self.process.start()

    def looked_after(self) -> bool:
        """Whether it is done."""
        at = self.board.at[self.number]
        if at != self.at:
            self.at, self.since = at, time.monotonic()
        alive = self.process.is_alive()
        if alive and at >= 0 and time.monotonic() - self.since > 3 * LONGEST:
            self.process.kill()
            self.process.join()
        if not self.process.exitcode:
            return not alive
        if at < 0:
            raise SystemExit("a worker ended before its first file")
        said = f"exit status {self.process.exitcode}"
        self.board.add(self.number, kind_of(at, self.turns), "failed")
        print(_report(self.seed, at, kind_of(at, self.turns), said), flush=True)
        self._start()
        return False


def lines_of(table: np.ndarray) -> str:
    lines = [
        "| kind | " + " | ".join(("files", *OUTCOMES)) + " |",
        "|---" * (2 + len(OUTCOMES)) + "|",
    ]
    for kind, row in (*zip(KINDS, table, strict=True), ("all", table.sum(axis=0))):
        if row.sum():
            lines.append(f"| {kind} | " + " | ".join(f"{n:,}" for n in (row.sum(), *row)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="read this one again, and let its error through")
    parser.add_argument("--save", help="where to write that one")
    parser.add_argument("--write", type=Path, help="a document whose table to replace")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="no other files than these")
    options = parser.parse_args()
    turns = tuple(options.kinds or TURNS)
    if options.only is None:
        table = run(options.count, options.jobs, options.seed, turns)
        if options.write is not None:
            from stress.report import write_between

            mark = f"<!-- written by python -m fuzz.hostile{' --kinds' * bool(options.kinds)} -->"
            end = "<!-- end of the files -->"
            write_between(options.write, mark, end, f"seed {options.seed}", lines_of(table))
        sys.exit(int(table[:, OUTCOMES.index("failed")].sum() > 0))
    kind, content, rng = hostile_file(options.seed, options.only, turns)
    path = options.save or f"/proc/self/fd/{os.memfd_create('hostile')}"
    quiet()
    print(kind, len(content), outcome(kind, content, rng, path))


if __name__ == "__main__":
    main()
