"""Links, pipes and folders in the place of files of ours: never followed, never replaced, named."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from widemargin import AdditiveSVC, BlockStore, KernelSVC, save
from widemargin.data import write_svmlight
from widemargin.data.ranges import read_range
from widemargin.export import export_libsvm, export_shapes
from widemargin.files import CLAIM, Folder, text_output
from widemargin.pages import write_page

VICTIM = b"years of work"
X = np.random.default_rng(0).random((60, 3))
Y = np.arange(60) % 2


# ------------------------------------------------------------------ what writes, and what for


def stopped(step, rows, of):
    if rows > 20:
        raise KeyboardInterrupt


def build(folder, keep="codes", **options):
    chunks = [(X[k : k + 10], Y[k : k + 10]) for k in range(0, 60, 10)]
    return BlockStore.build(folder, chunks, keep=keep, values_per_block=30, **options)


def begin(folder, keep="codes"):
    with pytest.raises(KeyboardInterrupt):
        build(folder, keep, told=stopped)


def checkpointed(folder):
    KernelSVC(levels=1, branching=2, random_state=0, checkpoint=folder).fit(X, Y)


def without_parts(folder):
    checkpointed(folder)
    for part in Path(folder).glob("*.part"):
        part.unlink()


def onnx(folder):
    pytest.importorskip("onnx")
    from widemargin.export import export_onnx

    export_onnx(ADDITIVE, folder / "a.onnx")


def figure(folder):
    pytest.importorskip("matplotlib")
    from widemargin.cli.output import save_figure
    from widemargin.plots import plot_shapes

    save_figure(plot_shapes(ADDITIVE), folder / "a.png")


def range_file(folder):
    given = folder.parent / "given.range"
    given.write_text("x\n-1 1\n1 0 2.5\n3 -1 7\n")
    read_range(given).write(folder / "a.range")


ADDITIVE = AdditiveSVC(random_state=0).fit(X, Y)
KERNEL = KernelSVC().fit(X, Y)
WRITERS = {
    "store": (lambda folder: None, build),
    "store of values": (lambda folder: None, lambda folder: build(folder, "values")),
    "store that was begun": (begin, build),
    "values that were begun": (
        lambda folder: begin(folder, "values"),
        lambda f: build(f, "values"),
    ),
    "append": (build, lambda folder: BlockStore(folder).append([(X, Y)], values_per_block=30)),
    "checkpoint": (lambda folder: None, checkpointed),
    "checkpoint that was begun": (without_parts, checkpointed),
    "model": (lambda folder: None, lambda folder: save(ADDITIVE, folder / "a.safetensors")),
    "text": (lambda folder: None, lambda folder: write_svmlight(folder / "a.svm", X, Y)),
    "page": (lambda folder: None, lambda folder: write_page(folder / "a.html", "page")),
    "shapes": (lambda folder: None, lambda folder: export_shapes(ADDITIVE, folder / "a.json")),
    "LIBSVM": (lambda folder: None, lambda folder: export_libsvm(KERNEL, folder / "a.model")),
    "range": (lambda folder: None, range_file),
    "ONNX": (lambda folder: None, onnx),
    "figure": (lambda folder: None, figure),
}
TO_PIPES = ("text", "page", "shapes", "LIBSVM")  # which go to a pipe that the caller names
PLANTED = {
    "link": lambda path, victim: path.symlink_to(victim),
    "link to nothing": lambda path, victim: path.symlink_to(victim.with_name("nothing")),
    "hard link": lambda path, victim: path.hardlink_to(victim),
    "pipe": lambda path, victim: os.mkfifo(path),
    "folder": lambda path, victim: path.mkdir(),
}


def names_used(prepare, write, folder, monkeypatch) -> set[str]:
    """Under which names files are put in the folder, and those that earlier versions used."""
    found, real = {CLAIM}, os.replace

    def replace(source, target, **folders):
        found.add(target)
        real(source, target, **folders)

    folder.mkdir()
    prepare(folder)
    with monkeypatch.context() as context:
        context.setattr(os, "replace", replace)
        write(folder)
    return found | {f"{name}.tmp" for name in found}


def refusal(write, folder) -> str | None:
    try:
        write(folder)
    except (OSError, ValueError) as error:
        return str(error)
    return None


@pytest.mark.filterwarnings("ignore:.* is truncated or damaged")  # a hard link of a part is that
@pytest.mark.parametrize("name", WRITERS)
def test_what_is_planted_at_any_name_is_not_written_through(name, tmp_path, monkeypatch):
    prepare, write = WRITERS[name]
    names = names_used(prepare, write, tmp_path / "clean", monkeypatch)
    assert len(names) > 3
    kinds = [kind for kind in PLANTED if kind != "pipe" or name not in TO_PIPES]
    for k, (used, kind) in enumerate((used, kind) for used in sorted(names) for kind in kinds):
        folder, victim = tmp_path / str(k), tmp_path / f"victim{k}"
        victim.write_bytes(VICTIM)
        folder.mkdir()
        prepare(folder)
        planted = folder / used
        planted.unlink(missing_ok=True)
        PLANTED[kind](planted, victim)
        before = os.lstat(planted)
        if (said := refusal(write, folder)) is not None:
            assert str(folder) in said, (used, kind)
            assert "\n" not in said, (used, kind)
            assert stat.S_IFMT(os.lstat(planted).st_mode) == stat.S_IFMT(before.st_mode)
        assert victim.read_bytes() == VICTIM, (used, kind)
        assert not victim.with_name("nothing").exists(), (used, kind)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_store_is_not_read_through_what_is_planted(kind, tmp_path):
    """And a pipe keeps nobody waiting."""
    for name in ("manifest.json", "encoder.bin", "block-000001.bin"):
        store = build(tmp_path / f"{name}")
        path = store.folder / name
        path.rename(tmp_path / f"{name}-there")
        PLANTED[kind](path, tmp_path / f"{name}-there")
        with pytest.raises(OSError, match=f"not a plain file.*{name}"):
            BlockStore(store.folder).verify()


# ------------------------------------------------------------------ folders


def test_a_folder_that_was_exchanged_is_still_the_one_that_was_opened(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    with Folder(tmp_path / "own") as folder:
        (tmp_path / "own").rename(tmp_path / "moved")
        (tmp_path / "own").symlink_to(tmp_path / "other")
        with folder.replacing("a") as file:
            file.write(b"mine")
        assert folder.read("a") == b"mine"
    assert os.listdir(tmp_path / "moved") == ["a"]
    assert os.listdir(tmp_path / "other") == []


def test_a_folder_travels_to_another_process_by_its_path(tmp_path):
    import pickle

    with Folder(tmp_path) as folder, folder.replacing("a") as file:
        file.write(b"mine")
    again = pickle.loads(pickle.dumps(folder))
    assert again.read("a") == b"mine"
    elsewhere = pickle.loads(pickle.dumps(folder).replace(b"tmp", b"pmt"))  # where it is not seen
    with pytest.raises(FileNotFoundError):
        elsewhere.read("a")


def test_what_killed_writers_have_left_is_removed_by_the_next_one(tmp_path):
    left, others = tmp_path / ".a.bin.0123456789abcdef.tmp", tmp_path / ".mine.tmp"
    left.touch()
    others.touch()
    with Folder(tmp_path) as folder:
        folder.claim("The folder", "writer")
    assert not left.exists()
    assert others.exists()


def test_no_descriptor_is_left_open(tmp_path):
    build(tmp_path / "store")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        store = BlockStore(tmp_path / "store")
        store.verify()
        with pytest.raises(FileExistsError):
            build(tmp_path / "store")
    del store
    assert len(os.listdir("/proc/self/fd")) <= before


# ------------------------------------------------------------------ outputs


def test_devices_are_written_as_they_are():
    with text_output("/dev/null") as file:
        file.write("gone")
    read, write = os.pipe()
    with text_output(f"/dev/fd/{write}") as file:
        file.write("through")
    os.close(write)
    assert os.read(read, 100) == b"through"
    os.close(read)
