"""The commands images train, predict, evaluate, explain and report."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from tests.html_outline import Outline
from tests.vision.helpers import encoded, striped, write_folder, write_tar

from widemargin import AdditiveSVC, KernelSVC, load, papers
from widemargin.vision import BagOfVisualWords, Centrist, Codebook, read_images

from .helpers import PROGRAM, is_picture, read_lines, refused, run, run_json

SMALL = ("--words", "6", "--seed", "0")
FILES = {
    f"{label}/{k:02}.jpg": encoded(striped(across, seed=k), "JPEG")
    for label, across in (("coast", True), ("forest", False))
    for k in range(8)
}


@pytest.fixture
def scenes():
    return write_folder(Path("scenes"), FILES)


@pytest.fixture
def model(scenes):
    run("images", "train", scenes, "m", *SMALL, "-q")
    return Path("m")


def test_the_default_is_icd_on_counts_of_words(scenes):
    found = run_json("images", "train", scenes, "m", *SMALL)
    assert (found["images"], found["features"], found["classes"]) == (16, 31 * 6, 2)
    assert (found["skipped"], found["other_files"], found["model"]) == (0, 0, "m")
    images = read_images(scenes)
    by_hand = make_pipeline(BagOfVisualWords(codebook=Codebook(6)), papers.icd(scaling=None))
    by_hand.fit(images, images.labels)
    decision = load("m").decision_function(images)
    np.testing.assert_array_equal(decision, by_hand.decision_function(images))


def test_the_name_of_the_data_is_that_of_the_model(scenes):
    assert "scenes.safetensors" in run("images", "train", scenes, *SMALL).stdout
    assert load("scenes.safetensors")[0].n_words_ == 6


def test_predictions_have_the_names_of_images(scenes, model):
    lines = [
        line.split("\t") for line in run("images", "predict", scenes, model).stdout.splitlines()
    ]
    assert [name for name, _ in lines] == sorted(FILES)
    assert [label for _, label in lines] == ["coast"] * 8 + ["forest"] * 8
    found = run_json("images", "predict", scenes, model, "out")
    assert (found["out"], found["images"], found["accuracy"]) == ("out", 16, 1.0)
    run("images", "predict", scenes, model, "out", "--output", "decision")
    head, *rows = (line.split("\t") for line in read_lines("out"))
    assert head == ["image", "forest"]
    expected = load(model).decision_function(read_images(scenes))
    np.testing.assert_allclose([float(value) for _, value in rows], expected, rtol=1e-6)
    one = run("images", "predict", "scenes/forest/03.jpg", model)
    assert one.stdout == "03.jpg\tforest\n"


def test_evaluation(scenes, model):
    found = run_json("images", "evaluate", scenes, model)
    assert (found["accuracy"], found["rows"], found["skipped"]) == (1.0, 16, 0)
    assert found["images_per_second"] > 0
    assert "per class" in run("images", "evaluate", scenes, model).stdout


@pytest.mark.parametrize(
    ("words", "features", "machine"),
    [
        (("--features", "centrist", "--levels", "1,2", "--no-overlap"), Centrist, AdditiveSVC),
        (("-t", "rbf", "--scale", "maxabs", *SMALL), BagOfVisualWords, KernelSVC),
        (("-t", "chi2", "--codebook", "intersection", *SMALL), BagOfVisualWords, AdditiveSVC),
        (("--features", "pmsvm-words", "--step", "9", *SMALL), BagOfVisualWords, AdditiveSVC),
    ],
)  # fmt: skip
def test_other_features_and_machines(words, features, machine, scenes):
    run("images", "train", scenes, "m", *words, "-q")
    fitted = load("m")
    assert (type(fitted[0]), type(fitted[-1])) == (features, machine)
    assert run_json("images", "evaluate", scenes, "m")["accuracy"] > 0.8


def test_every_option_of_features_arrives(scenes):
    run("images", "train", scenes, "m", "--words", "7", "--codebook", "intersection",
        "--neighbours", "2", "--step", "9", "--sides", "16,24", "--levels", "1,3", "--no-overlap",
        "--shares", "--root", "--edges", "--longest-side", "44", "--sample-size", "600",
        "--seed", "5")  # fmt: skip
    bag = load("m")[0]
    book, sift, pyramid = bag.codebook, bag.features, bag.pyramid
    assert (book.n_words, book.method, book.neighbours) == (7, "intersection", 2)
    assert book.random_state == 5
    assert (sift.step, sift.sides, sift.longest_side) == (9, (16, 24), 44)
    assert (pyramid.levels, pyramid.overlap, pyramid.shares) == ((1, 3), False, True)
    assert (bag.sample_size, bag.edges, sift.root) == (600, True, True)


def test_images_that_cannot_be_read_are_refused_or_named(scenes, model):
    (scenes / "coast" / "zero.jpg").write_bytes(b"")
    (scenes / "notes.txt").write_text("none")
    result = run("images", "train", scenes, "x", *SMALL, status=1)
    assert "1 of 17 images cannot be read; --on-error skip leaves them out" in result.stderr
    result = run("images", "evaluate", scenes, model, "--on-error", "skip", "--json")
    assert "skipped: 'coast/zero.jpg'" in result.stderr
    found = json.loads(result.stdout)
    assert (found["rows"], found["skipped"], found["other_files"]) == (16, 1, 1)


def test_archives_and_a_part_of_them():
    write_tar(Path("all.tar"), {f"train/{name}": content for name, content in FILES.items()})
    run("images", "train", "all.tar", "m", "--inside", "train", *SMALL, "-q")
    assert run_json("images", "evaluate", "all.tar", "m", "--inside", "train")["accuracy"] == 1.0
    assert "class" in run("images", "train", "all.tar", "m", *SMALL, status=1).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "scenes", "--features", "hog"), "--features hog: not one of"),
        (("train", "scenes", "--features", "centrist", "--step", "3"), "--step cannot be combined"),
        (("train", "scenes", "--probability"), "--probability"),
        (("train", "scenes", "-t", "precomputed"), "precomputed"),
        (("train", "scenes", "--on-error", "stop"), "--on-error stop: not one of"),
        (("train", "scenes", "--sides", "16.5"), "--sides 16.5: write whole numbers"),
        (("train", "scenes", "-j", "0"), "--jobs 0"),
        (("train", "scenes/coast"), "no label"),
        (("evaluate", "scenes/coast", "m"), "no label"),
        (("report", "scenes/coast", "m"), "no label"),
        (("evaluate", "scenes", "rows"), "not a model of images"),
        (("predict", "scenes", "m", "--json"), "--json prints a summary"),
        (("predict", "scenes", "m", "--output", "shapes"), "--output shapes"),
    ],
)
def test_refusals(words, said, model, iris):
    run("train", iris, "rows", "-q")
    assert said in refused("images", *words)


def test_other_commands_name_the_group(model, iris):
    for command in ("predict", "evaluate"):
        assert "Use widemargin images" in refused(command, iris, model)
    assert "BagOfVisualWords" in run("info", model).stdout


def test_defaults_of_the_group(scenes):
    Path("widemargin.toml").write_text("[images.train]\nwords = 5\nquiet = true\n[train]\nC = 3\n")
    assert run("images", "train", scenes, "m").output == ""
    assert load("m")[0].n_words_ == 5
    Path("widemargin.toml").write_text("[images.train]\nwordz = 5\n")
    assert "images train has no option 'wordz'" in refused("images", "train", scenes, "m")
    Path("widemargin.toml").write_text("[images]\nwords = 5\n")
    assert "'images words' is not a command" in refused("images", "train", scenes, "m")


def test_an_explanation_is_drawn(scenes, model):
    found = run_json("images", "explain", "scenes/coast/02.jpg", model)
    assert (found["picture"], found["label"]) == ("02.png", "coast")
    assert is_picture("02.png")
    total = found["in_the_image"] + found["absent_words"] + found["intercept"]
    assert total == pytest.approx(found["score"], abs=1e-4)
    assert len(found["windows"]) == len(found["by_window"]) == 31
    words = ("explain", "scenes/coast/02.jpg", model)
    found = run_json("images", *words, "other.svg", "--class", "forest")
    assert (found["label"], found["score"] < 0) == ("forest", True)
    assert "--class desert" in refused("images", *words, "--class", "desert")
    assert "16 images" in refused("images", "explain", scenes, model)
    assert "is the image itself" in refused("images", *words, "scenes/coast/02.jpg")
    run("images", "train", scenes, "rbf", "-t", "rbf", *SMALL, "-q")
    assert "additive" in refused("images", "explain", "scenes/coast/02.jpg", "rbf")


def test_help_names_every_command():
    commands = set(PROGRAM.commands["images"].commands)
    assert commands == {"train", "predict", "evaluate", "explain", "report"}
    assert "--codebook" in run("images", "train", "--help").stdout


def test_a_page_with_scores_and_heat_over_mistakes(scenes, model):
    swapped = {"coast/f.jpg": "forest/00.jpg", "forest/c.jpg": "coast/01.jpg"}
    write_folder(Path("new"), {name: FILES[of] for name, of in swapped.items()})
    (Path("new") / "coast" / "zero.jpg").write_bytes(b"")
    found = run_json("images", "report", "new", model, "page.html", "--on-error", "skip")
    assert (found["report"], found["images"], found["skipped"]) == ("page.html", 2, 1)
    text = Path("page.html").read_text(encoding="utf-8")
    page = Outline(text)
    assert page.headings[1:] == ["Scores", "Confusion", "Worst mistakes", "Model"]
    assert len(page.ids) == len(set(page.ids))
    assert "coast/f.jpg: predicted forest, true class coast" in text
    pictures = [svg["aria-label"] for svg in page.found["svg"]]
    assert len(pictures) == 4  # of either class for each of the two mistakes
    assert sum("What spoke for forest" in said for said in pictures) == 2
    assert text.count("data:image/png;base64") >= 4
    assert "coast/zero.jpg" in text
    run("images", "report", scenes, model)
    assert "There are none on these images" in Path("m.html").read_text(encoding="utf-8")


def test_a_page_about_a_machine_that_is_not_additive(scenes):
    run("images", "train", scenes, "rbf", "-t", "rbf", *SMALL, "-q")
    write_folder(Path("new"), {"coast/f.jpg": FILES["forest/00.jpg"]})
    run("images", "report", "new", "rbf", "page.html", "-q")
    text = Path("page.html").read_text(encoding="utf-8")
    assert "coast/f.jpg: predicted forest" in text
    assert "svg" not in Outline(text).found
