"""Two writers on one store: the second is refused, and a lock ends with its process."""

import re
import subprocess
import sys
import time

import numpy as np
import pytest

from .store_helpers import BUILD, build, chunks, content

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path):
    return build(tmp_path / "store")


def test_a_second_writer_is_refused(store, tmp_path):
    refusals = []

    def while_writing(second):
        for k, chunk in enumerate(chunks()):
            if k == 1:
                with pytest.raises(BlockingIOError) as refusal:
                    second()
                refusals.append(str(refusal.value))
            yield chunk

    store.append(while_writing(lambda: store.append(chunks())))
    new = tmp_path / "new"
    build(new, while_writing(lambda: build(new)))
    of_append, of_build = refusals
    assert re.search(r"The store .* is in use by process \d+", of_append)
    assert "Wait until that writer ends" in of_build
    assert content(new) == content(build(tmp_path / "other").folder)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(ValueError, match="other files in it"):
        build(tmp_path)
    assert content(tmp_path) == {"thesis.tex": b"years"}


def test_the_lock_ends_with_the_process(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", BUILD, tmp_path / "s"],
                               stdout=subprocess.PIPE)  # fmt: skip
    process.stdout.readline()
    with pytest.raises(BlockingIOError, match=f"process {process.pid}"):
        build(tmp_path / "s")
    process.kill()
    process.wait()
    process.stdout.close()
    started = time.monotonic()
    with pytest.raises(ValueError, match="begun with other data"):
        build(tmp_path / "s", [(np.ones((50, 20)), np.zeros(50))] * 3)
    assert time.monotonic() - started < 30
