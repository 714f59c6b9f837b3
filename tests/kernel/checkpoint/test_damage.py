"""Damaged parts are computed again; a full disk loses nothing that is finished."""

import errno
import os

import numpy as np
import pytest

from widemargin.files import replacing
from widemargin.kernel import checkpoint as module
from widemargin.kernel.checkpoint import Checkpoint

from ..helpers import points
from .helpers import Killed, assert_same_fit, kept, svc

# ------------------------------------------------------------------ damage


def truncated(position):
    return lambda content: content[: int(position * len(content))]


def flipped(position):
    def flip(content):
        at = min(int(position * len(content)), len(content) - 1)
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return flip


DAMAGE = {
    **{f"truncated at {p}": truncated(p) for p in (0, 0.01, 0.1, 0.3, 0.7, 0.99)},
    **{f"a bit flipped at {p}": flipped(p) for p in (0, 0.03, 0.08, 0.2, 0.5, 1)},
    "more at the end": lambda content: content + b"\0",
    "another file": lambda content: os.urandom(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("part", ["level2-cluster0", "whole0"])
def test_a_damaged_part_is_computed_again_with_a_warning(part, damage, folder, solves):
    data = points(160, 3)
    first = svc(checkpoint=folder).fit(*data)
    path = folder / f"{part}.part"
    good = path.read_bytes()
    path.write_bytes(damage(good))
    if part != "whole0":  # so that what is computed again matters
        for whole in folder.glob("whole*.part"):
            whole.unlink()
    solves.n = 0
    with pytest.warns(UserWarning, match=rf"{part}\.part' is truncated or damaged"):
        again = svc(checkpoint=folder).fit(*data)
    assert solves.n == (1 if part == "whole0" else 3 + 3)
    assert_same_fit(again, first)
    assert path.read_bytes() == good
    solves.n = 0
    svc(checkpoint=folder).fit(*data)  # without a warning now
    assert solves.n == 0


def test_an_intact_digest_of_something_else_is_damage(folder):
    data = points(160)
    first = svc(checkpoint=folder).fit(*data)
    payload = b"not what was packed"
    with Checkpoint(folder, svc()._identity(svc()._prepare(*data, None)), 0) as stored:
        content = module.MAGIC + stored._digest("whole0", payload) + payload
    (folder / "whole0.part").write_bytes(content)
    with pytest.warns(UserWarning, match="truncated or damaged"):
        assert_same_fit(svc(checkpoint=folder).fit(*data), first)


# ------------------------------------------------------------------ a full disk


def no_space():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_on_write(monkeypatch):
    """The disk takes the bytes, and then has no room for them."""
    real = os.fsync

    def fsync(descriptor):
        if ".part." in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise no_space()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def full_on_rename(monkeypatch):
    real = os.replace

    def replace(source, target, **folders):
        if str(target).endswith(".part"):
            raise no_space()
        real(source, target, **folders)

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize("full", [full_on_write, full_on_rename])
def test_a_full_disk_is_a_warning_and_the_fit_goes_on(full, data, folder, monkeypatch):
    expected = svc().fit(*data)
    full(monkeypatch)
    with pytest.warns(UserWarning, match=r"could not be written.*No space left.*the fit goes on"):
        model = svc(checkpoint=folder).fit(*data)
    assert_same_fit(model, expected)
    assert [path.name for path in kept(folder)] == ["fit.json"]


def test_a_fit_goes_on_from_what_a_full_disk_has_kept(folder, monkeypatch, solves):
    data = points(160)
    with monkeypatch.context() as context:
        real, written = os.replace, []

        def replace(source, target, **folders):
            if len(written) == 4:
                raise no_space()
            written.append(target)
            real(source, target, **folders)

        context.setattr(os, "replace", replace)
        with pytest.warns(UserWarning, match="could not be written"):
            first = svc(checkpoint=folder).fit(*data)
    total, solves.n = solves.n, 0
    assert_same_fit(svc(checkpoint=folder).fit(*data), first)
    assert solves.n == total - 3  # the head was the fourth file


def test_nothing_temporary_is_left(data, folder, solves):
    solves.after = 5
    with pytest.raises(Killed):
        svc(checkpoint=folder).fit(*data)
    assert all(path.suffix in (".part", ".json") for path in kept(folder))
    solves.after = np.inf
    svc(checkpoint=folder).fit(*data)
    assert all(path.suffix in (".part", ".json") for path in kept(folder))


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.part"
    path.write_bytes(b"old")

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
