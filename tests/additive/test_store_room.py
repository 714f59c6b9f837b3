"""No room for a store: it is said, what is finished is kept, and the build goes on later."""

import errno
import os
import subprocess
import sys

import pytest

from widemargin import BlockStore
from widemargin.additive import store_building

from .store_helpers import build, content

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def every_block_is_noted(monkeypatch):
    monkeypatch.setattr(store_building, "_SECONDS_BETWEEN", 0.0)


FULL = """
import resource, sys
import numpy as np
from widemargin import BlockStore
from widemargin.additive import store_building
store_building._SECONDS_BETWEEN = 0.0

def chunks():
    rng = np.random.default_rng(0)
    for _ in range(12):
        yield rng.random((50, 20)), rng.integers(0, 2, 50)

limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    BlockStore.build(sys.argv[1], chunks(), values_per_block=int(sys.argv[3]))
except OSError as error:
    print(error.errno, error)
"""


def test_a_disk_that_is_full_is_said_and_the_build_goes_on_later(tmp_path):
    def run(limit):
        command = [sys.executable, "-c", FULL, tmp_path / "store", str(limit), "2000"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    said = run(12_000)  # less than a raw block of 16,000 bytes
    assert said.startswith(f"{errno.EFBIG} ")
    assert "Finished blocks are kept: free some space, and build the store again" in said
    assert "raw-000000.bin" in said
    assert run(0) == ""
    assert BlockStore(tmp_path / "store").shape == (600, 20)


def test_no_room_in_the_middle_keeps_the_blocks_before(tmp_path, monkeypatch):
    write, written = store_building.write_arrays, []

    def full(folder, entry, arrays):
        if len(written) == 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / entry.file))
        written.append(entry.file)
        write(folder, entry, arrays)

    monkeypatch.setattr(store_building, "write_arrays", full)
    with pytest.raises(OSError, match=r"No space left.*Finished blocks are kept.*block-00000"):
        build(tmp_path / "store")
    monkeypatch.setattr(store_building, "write_arrays", write)
    build(tmp_path / "store", [])
    build(tmp_path / "whole")
    assert content(tmp_path / "store") == content(tmp_path / "whole")
