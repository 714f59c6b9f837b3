"""Read the header of a model file as a `Header`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from widemargin.additive.columns import Columns
from widemargin.libsvm import is_foreign, load_foreign
from widemargin.libsvm.predictors import LiblinearClassifier, LibsvmSVC
from widemargin.machine import FitRecord
from widemargin.persistence.container import Fields, model_budget, pack_number, read_fields


@dataclass(frozen=True)
class Header:
    """A model file without its arrays."""

    format: int
    package: str  # version of widemargin that wrote it
    kinds: tuple[str, ...]  # names of classes: the steps of a pipeline, or the only one
    n_features: int
    feature_names: list[str] | None  # if the model was fitted on a data frame or a table
    label_name: str | None  # of the label's column
    classes: list | None  # labels of a classifier
    record: FitRecord | None  # None for the factors of a scaling alone
    notes: dict[str, Any]  # those given to `save`
    content: dict[str, Any] = field(repr=False)  # the whole header, as in the file
    any_width: bool = False  # whether rows may have any number of features: LIBSVM, LIBLINEAR
    categorical: tuple[int, ...] = ()  # columns of categories


def read_header(path, *, max_bytes: int | None = None) -> Header:
    """Read the header of a model file without its arrays; ``max_bytes`` as in `load`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import AdditiveSVC, save
    >>> from widemargin.persistence import read_header
    >>> with TemporaryDirectory() as folder:
    ...     model = AdditiveSVC(random_state=0).fit(*load_iris(return_X_y=True))
    ...     save(model, f"{folder}/iris.safetensors", notes={"data": "iris"})
    ...     header = read_header(f"{folder}/iris.safetensors")
    >>> header.kinds, header.classes, header.record.n_rows, header.notes
    (('AdditiveSVC',), [0, 1, 2], 150, {'data': 'iris'})
    """
    if is_foreign(path):
        return foreign_header(load_foreign(path, model_budget(path, max_bytes)))
    fields = read_fields(path, max_bytes)
    steps = fields.inners("steps") if fields.has("steps") else [fields]
    if not steps:
        raise fields.fault("steps", "one or more")
    first, last = steps[0], steps[-1]
    trained = last.has("training")
    d = first.integer("n_features", low=1)
    columns = unpack_columns(first.inner("own"), d) if first.has("own") else Columns(d)
    return Header(
        format=fields.integer("format"),
        package=fields.text("package"),
        kinds=tuple(step.text("kind") for step in steps),
        n_features=d,
        feature_names=feature_names(first, d) if first.has("feature_names") else None,
        label_name=last.text("label_name") if last.has("label_name") else None,
        classes=last.inner("classes").items("values") if last.has("classes") else None,
        record=unpack_training(last.inner("training")) if trained else None,
        categorical=tuple(columns.categories),
        notes=fields.take("notes", dict, "an object") if fields.has("notes") else {},
        content=fields.content,
    )


def foreign_header(model: LibsvmSVC | LiblinearClassifier) -> Header:
    """Return the header of another program's model."""
    content: dict[str, Any] = {
        "labels": model.labels_.tolist(),
        "n_features": model.n_features_in_,
        "probabilities": hasattr(model, "predict_proba"),
    }
    if isinstance(model, LibsvmSVC):
        program, kind = "LIBSVM", f"{model.svm_type_}, {model.kernel_}"
        zero_based = model.zero_based_
        content["support_vectors"] = int(model.n_support_.sum())
    else:
        program, kind, zero_based = "LIBLINEAR", model.solver_type_, False
    return Header(
        format=0,
        package=program,
        kinds=(f"{program} {kind}",),
        n_features=model.n_features_in_,
        feature_names=None,
        label_name=None,
        classes=model.classes_.tolist(),
        record=None,
        notes={"zero_based": zero_based},
        content={"kind": f"{program} {kind}", **content},
        any_width=True,
    )


def feature_names(fields: Fields, d: int) -> list[str]:
    """Parse a name for each of d features."""
    names = fields.items("feature_names")
    if len(names) != d or not all(isinstance(name, str) for name in names):
        raise fields.fault("feature_names", f"a list of {d} texts")
    return names


def pack_record(record: FitRecord, measure: str) -> tuple[dict, dict]:
    """Return the fields "training", and the model's fields: history and ``measure``."""
    training = {
        "rows": record.n_rows,
        "seconds": record.seconds,
        "n_iter": int(record.n_iter),
        "gap": pack_number(record.gap),
        "objective": pack_number(record.objective),
    }
    history = [[{k: _plain(v) for k, v in step.items()} for step in run] for run in record.history]
    return training, {measure: pack_number(getattr(record, measure)), "history": history}


def _plain(value):
    return value if isinstance(value, (bool, int)) else pack_number(value)


def unpack_training(training: Fields) -> FitRecord:
    """Read the fields "training": everything but history and the model's measure."""
    return FitRecord(
        n_rows=training.integer("rows"),
        seconds=training.number("seconds"),
        n_iter=training.integer("n_iter"),
        gap=training.number("gap", finite=False),
        objective=training.number("objective", finite=False),
    )


def unpack_record(training: Fields, inner: Fields, measure: str) -> FitRecord:
    record = unpack_training(training)
    more: dict[str, Any] = {
        "history": [_run(inner, run) for run in inner.items("history")],
        measure: inner.number(measure, finite=False),
    }
    return replace(record, **more)


def _run(fields: Fields, run) -> list[dict]:
    if not isinstance(run, list):
        raise fields.fault("history", "lists of records")
    return [_record(Fields(content, fields.path, "history")) for content in run]


def _record(record: Fields) -> dict:
    return {
        name: value if type(value) in (bool, int) else record.number(name, finite=name == "seconds")
        for name, value in record.content.items()
    }


def pack_columns(columns: Columns) -> dict:
    return {
        "missing": sorted(columns.missing),
        "categories": [[column, list(names)] for column, names in columns.categories.items()],
    }


def unpack_columns(fields: Fields, n_columns: int) -> Columns:
    """Parse the columns; by default numbers without missing values."""
    if not fields.has("columns"):
        return Columns(n_columns)
    inner = fields.inner("columns")
    missing, pairs = inner.items("missing"), inner.items("categories")
    below = f"ascending below {n_columns}"
    if not _ascend(missing, n_columns):
        raise inner.fault("missing", f"numbers of columns, {below}")
    are_pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    if not are_pairs or not _ascend([column for column, _ in pairs], n_columns):
        raise inner.fault("categories", f"pairs of a column, {below}, and its texts")
    for _, names in pairs:
        texts = isinstance(names, list) and all(isinstance(text, str) for text in names)
        if not texts or any(a >= b for a, b in pairwise(names)):
            raise inner.fault("categories", "different texts for every column, in ascending order")
    return Columns(n_columns, {column: tuple(names) for column, names in pairs}, frozenset(missing))


def _ascend(numbers: list, end: int) -> bool:
    """Whether these are ascending integers from 0 to ``end`` - 1."""
    whole = all(type(number) is int for number in numbers)
    return whole and all(a < b for a, b in pairwise([-1, *numbers, end]))
