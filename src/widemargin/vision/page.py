"""`write_image_report`: a page about a model of images, with heat over its worst mistakes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin.additive import AdditiveSVC
from widemargin.calibration import uncalibrated
from widemargin.mistakes import Mistake, worst_mistakes
from widemargin.model_report import confusion_section, scores_section
from widemargin.pages import Html, facts, grid, page, picture, section, tag, write_page
from widemargin.report import evaluate
from widemargin.vision.explanation import explain_image
from widemargin.vision.picture import plot_heat
from widemargin.vision.reading import Images

_MOST = 6  # mistakes
_WIDTH = 3.6  # of a picture, in inches


def write_image_report(
    model, images: Images, path, *, title="A model", about: Mapping[str, object] | None = None
) -> None:
    """Write an HTML page about a model of images: one file, without scripts or other files.

    It has scores, the confusion of classes, and the most confident mistakes.  Of an additive
    machine, each is drawn twice: what spoke for the predicted class, and what for the true one.

    Parameters
    ----------
    model : Pipeline
        `BagOfVisualWords` or `Centrist`, scalers if any, and a machine.
    images : Images
        Images with labels, preferably ones that training did not see.
    path : path
        The file to write.
    title : str, default="A model"
    about : mapping of str to object, default=None
        Facts about the model, such as where it came from.
    """
    if images.labels is None:
        raise ValueError("A report needs the label of every image; some have none.")
    fitted = uncalibrated(model)
    features, behind = fitted[0], fitted[-1] if len(fitted) == 2 else fitted[1:]
    started = time.perf_counter()
    X = features.transform(images)
    counting = time.perf_counter() - started
    found = evaluate(behind, X, images.labels)
    found = replace(found, seconds=found.seconds + counting)
    mistakes = worst_mistakes(behind, X, images.labels, most=_MOST)
    introduction = tag(
        "p",
        f"{type(fitted[-1]).__name__} on {type(features).__name__}, ",
        f"{len(behind.classes_)} classes, {X.shape[1]:,} counts; measured on {len(images):,} ",
        "images. If these are its training images, expect lower scores on new ones.",
        class_="soft",
    )
    sections = [
        scores_section(found),
        confusion_section(found),
        _mistakes(fitted, images, mistakes),
        _model(fitted, images, about or {}),
    ]
    write_page(path, page(title, introduction, sections))


def _mistakes(fitted: Pipeline, images: Images, mistakes: list[Mistake]) -> tuple[str, Html]:
    title = "Worst mistakes"
    if not mistakes:
        return section(title, tag("p", "There are none on these images."))
    text = (
        "The most confident mistakes. The lead is the decision value of the predicted class minus "
        "that of the true one, or its distance from 0."
    )
    if isinstance(fitted[-1], AdditiveSVC):
        text += (
            " Red regions speak for the class above a picture, blue ones against it: what their "
            "patches add above what the same words add to the training images on average."
        )
    shown = (_mistake(fitted, images, mistake) for mistake in mistakes)
    return section(title, tag("p", text), *shown)


def _mistake(fitted: Pipeline, images: Images, mistake: Mistake) -> Html:
    name, image = images.names[mistake.row], images[mistake.row]
    said = f"{name}: predicted {mistake.predicted}, true class {mistake.truth}"
    pictures = [
        _picture(fitted, image, label)
        for label in (mistake.predicted, mistake.truth)
        if isinstance(fitted[-1], AdditiveSVC)
    ]
    lead = tag("p", f"lead {mistake.lead:.3g}", class_="soft")
    return tag("div", tag("h3", said), lead, grid(*pictures))


def _picture(fitted: Pipeline, image: np.ndarray, label) -> Html:
    found = explain_image(fitted, image, label)
    place = np.unravel_index(np.abs(found.heat).argmax(), found.heat.shape)
    down, right = (f"{100 * k / n:.0f} %" for k, n in zip(place, found.heat.shape, strict=True))
    alt = f"What spoke for {label}; most of all at {down} of the height, {right} of the width."
    height, width = found.heat.shape
    size = (_WIDTH, 0.4 + 0.78 * _WIDTH * height / width)
    return picture(partial(plot_heat, found, image), alt, size)


def _model(fitted: Pipeline, images: Images, about: Mapping[str, object]) -> tuple[str, Html]:
    machine = fitted[-1]
    values: dict[str, object] = {
        **about,
        "steps": ", then ".join(type(step).__name__ for _, step in fitted.steps),
        "duality gap": float(machine.duality_gap_),
        "images left out": len(images.faults),
    }
    named = (tag("li", fault.reason) for fault in images.faults)
    return section("Model", facts(values), tag("ul", *named) if images.faults else "")
