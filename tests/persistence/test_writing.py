"""Saving over an older model: whole or not at all."""

import copy
import os
import subprocess
import sys
import threading

import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from widemargin import AdditiveSVC, load, save

from .cases import Case, fitted, rows
from .damage import DAMAGED, damaged, nodes

pytestmark = pytest.mark.slow


@pytest.fixture
def older(path):
    """An older model at the path, and its bytes."""
    save(fitted("rbf")[0], path)
    return path.read_bytes()


FAILURES = {
    "interrupted": (os, "fsync", KeyboardInterrupt()),
    "reaching the disk": (os, "fsync", OSError(5, "Input/output error")),
    "taking the place": (os, "replace", OSError(18, "Invalid cross-device link")),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_leaves_the_older_model(name, path, older, monkeypatch):
    where, function, error = FAILURES[name]
    real = getattr(where, function)

    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(where, function, fail)
    with pytest.raises(KeyboardInterrupt if name == "interrupted" else OSError):
        save(fitted("chi2")[0], path)
    monkeypatch.setattr(where, function, real)
    assert path.read_bytes() == older
    assert os.listdir(path.parent) == [path.name]


def test_a_file_that_may_not_grow(path, older):
    """The system refuses to write more than so many bytes, as a full disk does."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(fitted("chi2")[0], path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == older
    assert os.listdir(path.parent) == [path.name]


def test_a_disk_that_is_full(tmp_path):
    """A small one, where this user may mount it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        path = disk / "model.safetensors"
        save(fitted("rbf")[0], path)
        older = path.read_bytes()
        large = Case(AdditiveSVC("chi2", max_iter=2), rows(6, 2000), [0, 1, 2] * 2).fit()
        with pytest.raises(OSError, match="No space left on device"):
            save(large, path)
        assert path.read_bytes() == older
        assert os.listdir(disk) == [path.name]
        load(path)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_folders_that_are_missing(tmp_path):
    path = tmp_path / "nowhere" / "model.safetensors"
    with pytest.raises(FileNotFoundError, match=r"nowhere/model\.safetensors"):
        save(fitted("rbf")[0], path)
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(NotADirectoryError, match=r"file/model\.safetensors"):
        save(fitted("rbf")[0], file / "model.safetensors")
    assert os.listdir(tmp_path) == ["file"]


def test_folders_that_may_not_be_written(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("read-only")
    path = folder / "model.safetensors"
    model = fitted("rbf")[0]
    save(model, path)
    older = path.read_bytes()
    folder.chmod(0o555)
    root = os.geteuid() == 0  # may write everywhere: be nobody for a moment
    opened = []
    try:
        if root:
            for parent in [folder.parent, *folder.parent.parents]:
                mode = parent.stat().st_mode & 0o7777
                if not mode & 0o001:
                    opened.append((parent, mode))
                    parent.chmod(mode | 0o001)
            os.seteuid(65534)
        with pytest.raises(PermissionError, match=r"read-only0/model\.safetensors"):
            save(model, path)
    finally:
        if root:
            os.seteuid(0)
        for parent, mode in opened:
            parent.chmod(mode)
        folder.chmod(0o755)
    assert path.read_bytes() == older
    assert os.listdir(folder) == [path.name]


def test_what_is_no_plain_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a plain file"):
        save(fitted("rbf")[0], pipe)
    assert pipe.is_fifo()
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="not a plain file"):
        save(fitted("rbf")[0], tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_link_is_read_and_never_written(tmp_path, path):
    link = tmp_path / "latest"
    link.symlink_to(path)
    for _ in range(2):  # the file is not there yet, and is
        with pytest.raises(FileExistsError, match=r"It is a link.*latest"):
            save(fitted("rbf")[0], link)
        save(fitted("chi2")[0], path)
    assert type(load(link)) is AdditiveSVC


def test_permissions(path, monkeypatch):
    """Those of any new file, and later those that somebody gave it."""
    before = os.umask(0o027)
    try:
        save(fitted("rbf")[0], path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    save(fitted("rbf")[0], path)
    assert path.stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize("name", ["x" * 255, "größe" * 30, "a b", ".hidden", "ü", "a\nb"])
def test_names_of_any_length(name, tmp_path):
    save(fitted("rbf")[0], tmp_path / name)
    load(tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_several_threads_save_to_one_file(path):
    models = [fitted(name)[0] for name in ("rbf", "chi2")]
    errors = []

    def work(model):
        try:
            for _ in range(15):
                save(model, path)
                load(path)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert os.listdir(path.parent) == [path.name]


KILLS = """
import os, random, signal, sys, time
import numpy as np
from widemargin import AdditiveSVC, load, save

folder, n_kills = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "model.safetensors")
X = np.random.default_rng(0).random((6, 20_000))
models = [
    AdditiveSVC("chi2", rank=4, max_iter=1, tol=0.9, C=C).fit(X, [0, 1, 2] * 2) for C in (1, 2)
]
expected = [model.decision_function(X).tobytes() for model in models]
started = time.perf_counter()
save(models[0], path)
took = time.perf_counter() - started
rng, found, stray = random.Random(0), [0, 0], 0
for _ in range(n_kills):
    child = os.fork()
    if child == 0:
        while True:
            for model in models[::-1]:
                save(model, path)
    time.sleep(rng.uniform(0, 4 * took))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found[expected.index(load(path).decision_function(X).tobytes())] += 1
    left = set(os.listdir(folder)) - {"model.safetensors"}
    assert all(name.startswith(".") for name in left), left
    assert len(left) <= 1, left
    stray += bool(left)
    for name in left:
        os.unlink(os.path.join(folder, name))
print(*found, stray)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the child that is killed is a fork")
def test_a_process_killed_while_it_saves(tmp_path):
    n_kills = 20
    arguments = [sys.executable, "-c", KILLS, str(tmp_path), str(n_kills)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, stray = map(int, done.stdout.split())
    assert first + second == n_kills
    assert first > 0
    assert second > 0
    assert stray > n_kills // 4  # most were killed half way
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_the_damaged_models_are_small(folder):
    """Small enough to be damaged in every place, within seconds."""
    for kind in DAMAGED:
        parts, content, X = damaged(kind, folder)
        assert len(content) < 60_000  # of words of images; the others are below 20,000
        assert len(X) == 3 if isinstance(X, list) else X.shape[0] == 3
        assert len(list(nodes(parts.header))) < 150


# ------------------------------------------------------------------ what could not be loaded


def _changed(name: str, **changes):
    model = copy.deepcopy(fitted(name)[0])
    for attribute, value in changes.items():
        setattr(model, attribute, value)
    return model


UNLOADABLE = {
    "a parameter out of its range": lambda: _changed("chi2", tol=-1.0),
    "a parameter of a kind that it has not": lambda: _changed("rbf", multi_class=3),
    "a weight that is none": lambda: _changed("rbf", class_weight={0: None}),
    "a label's name that is no text": lambda: _changed("chi2", label_name_=3),
    "labels that are not in order": lambda: _changed(
        "chi2", classes_=fitted("chi2")[0].classes_[::-1]
    ),
    "support that is negative": lambda: _changed("rbf", support_=-1 - fitted("rbf")[0].support_),
}


@pytest.mark.parametrize("name", UNLOADABLE)
def test_a_model_that_would_not_load_is_not_written(name, path, older):
    with pytest.raises(ValueError, match="The model is not saved, because it would not load: "):
        save(UNLOADABLE[name](), path)
    assert path.read_bytes() == older
    assert os.listdir(path.parent) == [path.name]


def test_of_a_search_the_best_is_written(path):
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(AdditiveSVC(), {"C": [1.0]}, cv=2)
    with pytest.raises(TypeError, match="not GridSearchCV"):
        save(search, path)
    save(search.fit(X, y), path)
    assert (load(path).decision_function(X) == search.decision_function(X)).all()
