"""Write a page about a model: data, scores, terms, mistakes, convergence, parameters."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin.bands import Bands, shape_bands
from widemargin.calibration import uncalibrated
from widemargin.machine import Machine, changed_and_default_parameters, feature_names
from widemargin.mistakes import Mistake, worst_mistakes
from widemargin.pages import (
    Html,
    facts,
    folded,
    grid,
    heat,
    page,
    picture,
    section,
    table,
    tag,
    tiles,
    write_page,
)
from widemargin.pairs import PairsSummary, missed_pairs
from widemargin.plots import (
    plot_convergence,
    plot_importance,
    plot_pair,
    plot_reliability,
    plot_shape,
)
from widemargin.plots.shapes import MOST_BANDS
from widemargin.reliability import reliability
from widemargin.report import MOST_IN_MATRIX, Evaluation, evaluate
from widemargin.term_bins import term_values
from widemargin.terms import MISSING, Explanation, Term, explain, is_explainable

_PACKAGES = ("widemargin", "numpy", "scipy", "scikit-learn")  # versions to list on the page
_MOST_COLUMNS, _MOST_SHAPES, _MOST_BARS, _MOST_PAIRS = 50, 12, 20, 4
_FEWEST_FOR_PAIRS = 40
_N_FITS = 20


def write_report(
    model,
    X,
    y,
    path,
    *,
    names: Sequence[str] | None = None,
    title: str = "A model",
    training: tuple[Any, Any] | None = None,
    about: Mapping[str, object] | None = None,
) -> None:
    """Write an HTML page about a model: one file, without scripts or external resources.

    Parameters
    ----------
    model : AdditiveSVC, KernelSVC, a Pipeline that ends in one, or calibrated ones of these
        Importance, shapes and pairs are for additive models, alone or after scalers.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows to measure the model on, preferably unseen ones.
    y : array-like of shape (n_samples,)
    path : path
        The file to write, such as ``report.html``.
    names : sequence of str, default=None
        Names of the features, if the model has none.
    title : str, default="A model"
    training : tuple of X and y, default=None
        The training rows: 20 copies are fitted to bootstrap samples of them,
        and shapes get a band that contains nine in ten.  Not for more than three classes.
    about : mapping of str to object, default=None
        More facts about the model, such as where it came from.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC, write_report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = AdditiveSVC(random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     write_report(model, X, y, f"{folder}/iris.html", title="Iris")
    ...     content = Path(f"{folder}/iris.html").read_text(encoding="utf-8")
    >>> content.startswith("<!DOCTYPE html>"), "petal width (cm)" in content
    (True, True)
    """
    y = np.asarray(y)
    if len(y) == 0:
        raise ValueError("A report needs at least one row to measure the model on.")
    bands = None
    subject = Subject(uncalibrated(model), X, y, names, model)
    if not isinstance(subject.machine, Machine):
        kind = type(subject.machine).__name__
        raise ValueError(f"A report takes AdditiveSVC or KernelSVC, not {kind}.")
    if training is not None and subject.has_bands:
        bands = shape_bands(subject.model, *training, n_fits=_N_FITS, names=names)
    evaluation = evaluate(subject.model, X, y)
    kind = type(subject.machine).__name__
    introduction = tag(
        "p", f"{kind}, {len(subject.machine.classes_)} classes, ",
        f"{subject.model.n_features_in_:,} features; measured on {len(y):,} rows. ",
        "If these are its training rows, expect lower scores on new ones.", class_="soft",
    )  # fmt: skip
    write_page(path, page(title, introduction, _sections(subject, evaluation, bands, about or {})))


@dataclass(frozen=True)
class Subject:
    """A model, the rows to measure it on, and the calibrated model if any."""

    model: Any
    X: Any
    y: np.ndarray
    names: Sequence[str] | None
    calibrated: Any

    @property
    def machine(self):
        return self.model[-1] if isinstance(self.model, Pipeline) else self.model

    @cached_property
    def explained(self) -> Explanation | None:
        """Contributions of terms, for additive models."""
        return explain(self.model, self.names) if is_explainable(self.model) else None

    @property
    def has_bands(self) -> bool:
        """Whether a picture can show bands of its terms."""
        return self.explained is not None and len(self.explained.classes) <= MOST_BANDS

    @cached_property
    def importances(self) -> np.ndarray:
        """Importances of the terms on the training data."""
        assert self.explained is not None
        return self.explained.importances()

    @cached_property
    def terms(self) -> list[Term]:
        """Columns of the data, the most important first if known."""
        if self.explained is not None:
            order = np.argsort(-self.importances, kind="stable")
            return [self.explained.terms[k] for k in order]
        if getattr(self.machine, "kernel", None) == "precomputed":
            return []  # kernel values are not columns
        names = getattr(self.model, "feature_names_in_", None) if self.names is None else self.names
        return [Term(name, j, (j,)) for j, name in enumerate(feature_names(self.model, names))]


def _sections(subject: Subject, evaluation: Evaluation, bands, about) -> list[tuple[str, Html]]:
    parts = [scores_section(evaluation), confusion_section(evaluation), _calibration(subject)]
    if subject.explained is not None:
        parts += [_importance(subject), _shapes(subject, bands), _pairs(subject)]
    return [
        *parts,
        _mistakes(subject),
        _convergence(subject),
        _data(subject),
        _model(subject, about),
    ]


def scores_section(evaluation: Evaluation) -> tuple[str, Html]:
    """Return accuracy and other scores, of all rows and of each class."""
    large = {
        "accuracy": f"{100 * evaluation.accuracy:.2f} %",
        "balanced accuracy": f"{100 * evaluation.balanced_accuracy:.2f} %",
        "AUC": f"{evaluation.roc_auc:.4f}",
        "rows": evaluation.rows,
        "per row": _duration(evaluation.microseconds_per_row),
    }
    rows = [
        [str(c.label), c.rows, f"{c.precision:.4f}", f"{c.recall:.4f}", f"{c.f1:.4f}"]
        for c in [*evaluation.classes, evaluation.mean]
    ]
    per_class = table(["class", "rows", "precision", "recall", "F1"], rows, "Scores by class")
    many = len(rows) > MOST_IN_MATRIX
    return section("Scores", tiles(large), folded("by class", per_class) if many else per_class)


def _duration(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:.3g} \N{MICRO SIGN}s"
    return f"{microseconds / 1000:.3g} ms"


def confusion_section(evaluation: Evaluation) -> tuple[str, Html]:
    """Return the confusion matrix, or its largest errors if there are many classes."""
    labels = [str(c.label) for c in evaluation.classes]
    counts = evaluation.confusion
    if len(labels) > MOST_IN_MATRIX:
        rows = [[str(true), tag("td", predicted, class_="text"), n]
                for true, predicted, n in evaluation.most_confused()]  # fmt: skip
        return section("Confusion", table(["true", "predicted", "rows"], rows, "Most confused"))
    of_class = np.maximum(counts.sum(axis=1), 1)
    rows = [
        [label, *(heat(int(n), n / of_class[k]) for n in counts[k])]
        for k, label in enumerate(labels)
    ]
    header = ["true \\ predicted", *labels]
    return section("Confusion", table(header, rows, "Rows by true and predicted class"))


def _calibration(subject: Subject) -> tuple[str, Html]:
    bins = reliability(subject.calibrated, subject.X, subject.y)
    if bins.of == "probability":
        text = (
            "Predicted probabilities differ from observed frequencies by "
            f"{100 * bins.error:.1f} points on average."
        )
    else:
        text = (
            "Decision values are not probabilities, but larger ones should be right more often. "
            "CalibratedSVC turns them into probabilities."
        )
    ends = f"from {bins.share[0]:.2f} to {bins.share[-1]:.2f}"
    alt = f"Share of rows ({bins.event}) against the {bins.of}: {ends}."
    drawn = picture(partial(_drawn, plot_reliability, bins), alt, (4.4, 3))
    return section("Calibration", tag("p", text), drawn)


def _drawn(plot: Callable, *arguments, **options):
    """Adapt a plot function to the page, which passes the axes last."""
    *given, ax = arguments
    return plot(*given, ax=ax, **options)


def _importance(subject: Subject) -> tuple[str, Html]:
    names = ", ".join(term.name for term in subject.terms[:3])
    alt = f"Bars of the mean absolute contribution of terms; the longest are {names}."
    n = min(len(subject.terms), _MOST_BARS)
    draw = partial(_drawn, plot_importance, subject.explained, most=_MOST_BARS)
    drawn = picture(draw, alt, (4.6, 0.22 * n + 0.8))
    text = "How much each column moves the decision values: the mean of |contribution|."
    if len(subject.terms) > n:
        text += f" The first {n} of {len(subject.terms):,}."
    return section("Importance", tag("p", text), drawn)


def _shapes(subject: Subject, bands: Bands | None) -> tuple[str, Html]:
    explained = subject.explained
    assert explained is not None
    moving = max(int(np.count_nonzero(subject.importances)), 1)  # constant columns add nothing
    shown = [
        picture(
            partial(_drawn, plot_shape, explained, term.name, bands=bands),
            f"What {term.name} adds to the decision value, over its values.",
        )
        for term in subject.terms[: min(_MOST_SHAPES, moving)]
    ]
    text = (
        "What the most important columns add to the decision value, in their own units; grey bars "
        "say how often values occur in the training data."
    )
    if bands is not None:
        text += (
            f" Nine in ten of {bands.n_fits} copies, fitted to bootstrap samples of the training "
            "rows, lie in the band."
        )
    return section("Shapes", tag("p", text), grid(*shown))


def _pairs(subject: Subject) -> tuple[str, Html]:
    title = "Pairs that the model misses"
    if len(subject.y) < _FEWEST_FOR_PAIRS or len(subject.terms) < 2:
        return section(
            title, tag("p", f"This needs {_FEWEST_FOR_PAIRS} rows or more, and 2 columns.")
        )
    pairs = missed_pairs(subject.model, subject.X, subject.y, names=subject.names)
    outstanding = [pair for pair in pairs if pair.stands_out]
    classes = subject.machine.classes_
    maps = [
        picture(
            partial(_drawn, plot_pair, pair, classes),
            f"Where the model is off in cells of {pair.name}.",
            (4.6, 3.6),
        )
        for pair in outstanding[:_MOST_PAIRS]
    ]
    summary = PairsSummary.of(pairs)
    measured = "Measured on rows that the patterns were not learned from"
    listed = [table(summary.header, summary.rows, measured)] if summary.rows else []
    return section(title, tag("p", summary.verdict), grid(*maps), *listed)


def _mistakes(subject: Subject) -> tuple[str, Html]:
    mistakes = worst_mistakes(subject.model, subject.X, subject.y, names=subject.names)
    if not mistakes:
        return section("Worst mistakes", tag("p", "There are none on these rows."))
    text = (
        "The model's most confident mistakes. Rows count from 1. The lead is the decision value of "
        "the predicted class minus that of the true one, or its distance from 0; others are the "
        "remaining columns and the intercept."
    )
    return section("Worst mistakes", tag("p", text), grid(*map(_mistake, mistakes)))


def _mistake(mistake: Mistake) -> Html:
    title = f"Row {mistake.row + 1:,}: predicted {mistake.predicted}, true class {mistake.truth}"
    lead = f"lead {mistake.lead:.3g}"
    if not mistake.reasons:
        return tag("p", tag("b", title), f"; {lead}")
    rows = [
        [r.name, Html(tag("td", _value(r.value), class_="text")), f"{r.contribution:+.3f}"]
        for r in mistake.reasons
    ]
    caption = f"What speaks for {mistake.predicted}; {lead}"
    return tag("div", tag("h3", title), table(["column", "value", "adds"], rows, caption))


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _convergence(subject: Subject) -> tuple[str, Html]:
    machine = subject.machine
    record = machine.fit_record_
    values = {
        "duality gap": float(record.gap),
        "tolerance": float(machine.tol),
        "iterations": int(record.n_iter),
        "seconds": float(record.seconds),
        "training rows": int(record.n_rows),
    }
    try:
        alt = f"The gap by step; it ends at {record.gap:.2g} (tolerance {machine.tol:g})."
        drawn = picture(partial(_drawn, plot_convergence, machine), alt, (4.4, 3))
    except ValueError as error:  # an early model has no steps
        drawn = tag("p", error)
    warning = tag("p", "The fit stopped above its tolerance.", class_="warn")
    return section("Convergence", "" if machine.converged_ else warning, drawn, facts(values))


def _data(subject: Subject) -> tuple[str, Html]:
    labels, count = np.unique(subject.y, return_counts=True)
    rows = [[str(c), int(n), f"{100 * n / len(subject.y):.1f} %"]
            for c, n in zip(labels.tolist(), count, strict=True)]  # fmt: skip
    classes = table(["class", "rows", "share"], rows, "Classes in these rows")
    parts = [folded("classes", classes) if len(rows) > MOST_IN_MATRIX else classes]
    if subject.terms:
        shown = subject.terms[:_MOST_COLUMNS]
        header = ["column", "kind", "lowest", "median", "highest", "missing"]
        caption = "Columns in these rows"
        if len(shown) < len(subject.terms):
            caption += f", {len(shown)} of {len(subject.terms):,}"
        parts.append(table(header, [_column(subject.X, term) for term in shown], caption))
    return section("Data", *parts)


def _column(X, term: Term) -> list:
    """Describe a column in a line; categories show the most frequent as median."""
    values = term_values(X, term)
    if values.dtype == object:
        categories, count = np.unique(values, return_counts=True)
        missing = float(np.mean(values == MISSING))
        most = str(categories[count.argmax()])
        return [
            term.name,
            f"{len(categories)} categories",
            "",
            f"most: {most}",
            "",
            _share(missing),
        ]
    known = values[~np.isnan(values)]
    numbers = [f"{f(known):.4g}" if len(known) else "" for f in (np.min, np.median, np.max)]
    return [term.name, "number", *numbers, _share(1 - len(known) / len(values))]


def _share(part: float) -> str:
    return f"{100 * part:.1f} %" if part else ""


def _model(subject: Subject, about: Mapping[str, object]) -> tuple[str, Html]:
    machine = subject.machine
    steps = subject.model.steps if isinstance(subject.model, Pipeline) else [("", subject.model)]
    values: dict[str, object] = {
        **about,
        "steps": ", then ".join(type(step).__name__ for _, step in steps),
    }
    if hasattr(machine, "kernel_"):
        values["kernel"] = machine.kernel_
    if hasattr(machine, "support_"):
        values["support vectors"] = len(machine.support_)
    changed, rest = changed_and_default_parameters(machine)
    used = {package: version(package) for package in _PACKAGES} | {
        "Python": platform.python_version()
    }
    return section(
        "Model",
        facts(values | _texts(changed)),
        folded("parameters at their defaults", facts(_texts(rest))),
        folded("versions that wrote this page", facts(used)),
    )


def _texts(content: Mapping[str, object]) -> dict[str, object]:
    """Format parameters as Python does, without rounding."""
    return {name: str(value) for name, value in content.items()}
