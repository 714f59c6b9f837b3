"""`explain_image`: which regions and words of an image spoke for its label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin.additive import AdditiveSVC
from widemargin.calibration import uncalibrated
from widemargin.vision.counting import WordCounter
from widemargin.vision.pyramid import Words


@dataclass(frozen=True)
class ImageExplanation:
    """A decision value as a sum over an image: ``heat.sum() + absent.sum() + intercept``.

    Contributions are those of `AdditiveSVC.contributions`: above zero, a word in a window speaks
    for the label more than it does in the training images on average.

    Attributes
    ----------
    label : object
        The class that is explained.
    score : float
        Its decision value.
    intercept : float
        Its mean over the training images.
    heat : ndarray of shape (height, width)
        What the words that are in the image add, shared by the pixels of their patches.
    absent : ndarray of shape (n_windows,)
        What words add that are not in a window.
    by_window : ndarray of shape (n_windows,)
        What each window adds, words that are absent included.
    by_word : ndarray of shape (n_words,)
        What each word adds in all windows, absent or not.
    image : ndarray of shape (height, width)
        The grey pixels, as the features saw them.
    windows : ndarray of shape (n_windows, 3)
        Top, left and side of each window, as shares of the image.
    """

    label: object
    score: float
    intercept: float
    heat: np.ndarray
    absent: np.ndarray
    by_window: np.ndarray
    by_word: np.ndarray
    image: np.ndarray
    windows: np.ndarray


def explain_image(model, image: np.ndarray, label=None) -> ImageExplanation:
    """Return what spoke for a label, in each place of an image.

    Parameters
    ----------
    model : Pipeline
        `BagOfVisualWords` or `Centrist`, scalers if any, and an `AdditiveSVC`.
    image : ndarray
        Grey or colour pixels.
    label : object, default=None
        The class to explain; by default the one that is predicted.

    Returns
    -------
    explanation : ImageExplanation

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin.vision import Centrist
    >>> rng = np.random.default_rng(0)
    >>> images = [np.cumsum(rng.random((40, 50)), axis=k % 2) / 50 for k in range(20)]
    >>> model = make_pipeline(Centrist(), AdditiveSVC("intersection", random_state=0))
    >>> found = explain_image(model.fit(images, np.arange(20) % 2), images[0])
    >>> found.label, found.heat.shape
    (0, (40, 50))
    >>> total = found.heat.sum() + found.absent.sum() + found.intercept
    >>> bool(abs(total - found.score) < 1e-5)
    True
    """
    features, before, machine = _parts(uncalibrated(model))
    pixels = features.prepared(image)
    words = features.words(pixels)
    row = features.pyramid_.count(words)
    for scaler in before:
        row = scaler.transform(row)
    if label is None:
        label = machine.predict(row)[0]
    parts = np.asarray(machine.contributions(row, label), dtype=float)[0]
    intercept, parts = parts[-1], parts[:-1].reshape(-1, words.n_words)
    heat, present = _heat(words, features, parts, pixels.shape)
    return ImageExplanation(
        label=label.item() if isinstance(label, np.generic) else label,
        score=float(parts.sum() + intercept),
        intercept=float(intercept),
        heat=heat,
        absent=np.where(present, 0, parts).sum(axis=1),
        by_window=parts.sum(axis=1),
        by_word=parts.sum(axis=0),
        image=pixels,
        windows=features.pyramid_.windows(),
    )


def _parts(model) -> tuple[WordCounter, list, AdditiveSVC]:
    """Return features, scalers and machine of a pipeline."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    features, before, machine = steps[0], steps[1:-1], steps[-1]
    if not isinstance(features, WordCounter) or not isinstance(machine, AdditiveSVC):
        kinds = ", ".join(type(step).__name__ for step in steps)
        raise ValueError(
            "Explained are pipelines of BagOfVisualWords or Centrist and an AdditiveSVC, not "
            f"{kinds}: of other machines, a decision is not a sum over words."
        )
    return features, before, machine


def _heat(
    words: Words, features: WordCounter, parts: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Share contributions among patches, and these among pixels.

    Returns the heat of pixels, and which words each window has.
    """
    share = np.ones(words.word.shape) if words.share is None else words.share
    present = np.zeros(parts.shape, dtype=bool)
    value = np.zeros(len(words.word))
    for window in features.pyramid_.windows_of(words):
        own = np.flatnonzero(window >= 0)
        cell = (window[own, None], words.word[own])
        total = np.zeros(parts.shape)
        np.add.at(total, cell, share[own])
        present |= total > 0
        value[own] += (parts[cell] * share[own] / total[cell]).sum(axis=1)
    return _painted(words, value, shape), present


def _painted(words: Words, value: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Spread each patch's value evenly over its pixels."""
    rim = (np.array(shape) - words.shape) / 2  # of pixels that no patch is centred on
    first = np.rint(words.centre + rim - words.side[:, None] / 2).astype(np.intp)
    last = first + words.side[:, None].astype(np.intp)
    each = value / np.maximum(words.side, 1) ** 2
    steps = np.zeros((shape[0] + 1, shape[1] + 1))
    for (rows, columns), sign in (
        ((first[:, 0], first[:, 1]), 1),
        ((first[:, 0], last[:, 1]), -1),
        ((last[:, 0], first[:, 1]), -1),
        ((last[:, 0], last[:, 1]), 1),
    ):
        np.add.at(steps, (rows, columns), sign * each)
    return steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
