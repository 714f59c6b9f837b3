"""Numbers by sums over columns: AdditiveSVR against linear models, splines, trees and EBM.

All of a table's machines get the same columns: categories as they are where a machine takes them,
else one-hot.  C and alpha are chosen by the squared error on a fifth of the training rows (of
diabetes, in five folds) from powers of 10; trees and EBM have their defaults, and EBM once without
its interactions, as the sum over columns that all others but the trees are.  Seconds are those that
a process of its own computes in one fit with the chosen parameters, on one thread.

Tables: scikit-learn's diabetes (progression; the mean of five splits); covtype's elevation from its
other 53 columns; the age of census-income's persons from the other 41 columns; the last band of
satimage's middle pixel from the bands of the eight around it.  EBM is left out where `interpret` is
not installed.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.svm import LinearSVR

from benchmarks import data
from benchmarks.census import census
from benchmarks.report import SEED, one_thread, table, write
from widemargin import AdditiveSVR

ROWS = 30_000
SPLITS = 5  # of diabetes
FEW = 1000  # rows up to which C is chosen in five folds rather than one
CS = 10.0 ** np.arange(-2, 5)
KNOTS = 20
PROCESSES = 8
NUMBERS = "number"  # pandas' name of their types
COLUMNS = ["table", "machine", "parameter", "RMSE", "MAE", "R2", "fit, s"]

Split = tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]


# ------------------------------------------------------------------ tables


def diabetes() -> list[Split]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    y = y.to_numpy()
    return [tuple(train_test_split(X, y, test_size=0.25, random_state=k)) for k in range(SPLITS)]


def covtype() -> list[Split]:
    values = np.load(data.folder() / "covtype.npz")["X"].astype(np.float64)
    return [_split(_frame(values[:, 1:]), values[:, 0])]


def census_age() -> list[Split]:
    _, X, X_test, income, income_test = census()
    rich = pd.Categorical(np.concatenate([income, income_test]).astype(str))
    X = pd.concat([X, X_test]).assign(income=rich)
    age = X.columns[0]
    return [_split(X.drop(columns=age), X[age].to_numpy(np.float64))]


def satimage() -> list[Split]:
    values = np.load(data.folder() / "satimage.npz")["X"].astype(np.float64)
    middle = range(16, 20)  # its four bands, after those of four pixels
    return [_split(_frame(np.delete(values, middle, axis=1)), values[:, 19])]


def _frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"column {j}" for j in range(values.shape[1])])


def _split(X: pd.DataFrame, y: np.ndarray) -> Split:
    """A test part of a quarter, and at most `ROWS` rows to learn from."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED)
    return X[:ROWS], X_test[:ROWS], y[:ROWS], y_test[:ROWS]


TABLES = {
    "diabetes": diabetes,
    "covtype, elevation": covtype,
    "census, age": census_age,
    "satimage, band": satimage,
}


# ------------------------------------------------------------------ machines


def ours(X: pd.DataFrame) -> Callable[[float], Any]:
    return lambda C: AdditiveSVR(C=C, missing="learn", random_state=SEED)


def linear(X: pd.DataFrame) -> Callable[[float], Any]:
    how = {"loss": "squared_epsilon_insensitive", "dual": False, "random_state": SEED}
    return lambda C: _scaled(_columns(X, StandardScaler()), LinearSVR(C=C, **how))


def splines(X: pd.DataFrame) -> Callable[[float], Any]:
    bent = SplineTransformer(KNOTS, extrapolation="constant")
    return lambda C: _scaled(_columns(X, bent), Ridge(alpha=1 / C))


def _columns(X: pd.DataFrame, transformer) -> Any:
    """Numbers through a transformer, columns of two values as they are, categories one-hot."""
    numbers = X.select_dtypes(NUMBERS).columns
    bent = [name for name in numbers if X[name].nunique() > 2]
    two = [name for name in numbers if name not in bent]
    others = [name for name in X.columns if name not in set(numbers)]
    return make_column_transformer(
        (transformer, bent),
        ("passthrough", two),
        (OneHotEncoder(handle_unknown="ignore"), others),
    )


def _scaled(columns, model) -> Any:
    return TransformedTargetRegressor(make_pipeline(columns, model), transformer=StandardScaler())


def trees(X: pd.DataFrame) -> Any:
    return HistGradientBoostingRegressor(random_state=SEED)


def boosting(X: pd.DataFrame, **changes) -> Any:
    from interpret.glassbox import ExplainableBoostingRegressor

    return ExplainableBoostingRegressor(n_jobs=1, random_state=SEED, **changes)


CHOSEN = {"AdditiveSVR": ours, "LinearSVR": linear, "SplineTransformer + Ridge": splines}
DEFAULTS: dict[str, Callable[[pd.DataFrame], Any]] = {"HistGradientBoosting": trees}
if importlib.util.find_spec("interpret"):
    DEFAULTS["EBM without interactions"] = lambda X: boosting(X, interactions=0)
    DEFAULTS["EBM"] = boosting


def measured(name: str, split: Split) -> np.ndarray:
    """Parameter (NaN without one), RMSE, MAE, R2 and seconds of a machine on a split."""
    X, X_test, y, y_test = split
    C = np.nan
    if name in CHOSEN:
        make = CHOSEN[name](X)
        C = min(CS, key=lambda C: _held_out_error(make(C), X, y))
        model = make(C)
    else:
        model = DEFAULTS[name](X)
    started = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - started
    found = model.predict(X_test)
    errors = root_mean_squared_error(y_test, found), mean_absolute_error(y_test, found)
    return np.array([C, *errors, 1 - (errors[0] / y_test.std()) ** 2, seconds])


def _held_out_error(model, X: pd.DataFrame, y: np.ndarray) -> float:
    folds = list(KFold(5, shuffle=True, random_state=SEED).split(y))
    return sum(
        np.sum((model.fit(X.iloc[fit], y[fit]).predict(X.iloc[held]) - y[held]) ** 2)
        for fit, held in (folds if len(y) < FEW else folds[:1])
    )


def averaged(label: str, name: str) -> tuple[tuple[int, int], np.ndarray]:
    """The shape of a table's training rows, and a machine's measures."""
    one_thread()
    warnings.simplefilter("ignore")  # of machines that stop early, and of rare categories
    splits = TABLES[label]()
    found = np.mean([measured(name, split) for split in splits], axis=0)
    print(label, name, found.round(3), flush=True)
    return splits[0][0].shape, found


def main() -> None:
    names, rows, bars = [*CHOSEN, *DEFAULTS], [], []
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as processes:
        tasks = {(t, m): processes.submit(averaged, t, m) for m in names[::-1] for t in TABLES}
    for label in TABLES:
        (n, d), _ = tasks[label, names[0]].result()
        found = {name: tasks[label, name].result()[1] for name in names}
        for name, (C, rmse, mae, r2, seconds) in found.items():
            parameter = f"{C:.3g}" if name in CHOSEN else ""
            cells = [f"{rmse:.4g}", f"{mae:.4g}", f"{r2:.3f}", f"{seconds:.3g}"]
            rows.append([f"{label}, {n:,} x {d}", name, parameter, *cells])
        bars += _bars(label, found)
    lines = table(COLUMNS, rows)
    lines += ["", *table(["figure", "measured", "bar"], bars)]
    write("regression_additive", "Regression by sums over columns", lines)


def _bars(label: str, found: dict[str, np.ndarray]) -> list[list[str]]:
    """What the issue's bars say, of one table."""
    rmse = {name: values[1] for name, values in found.items()}
    seconds = {name: values[-1] for name, values in found.items()}
    own = rmse["AdditiveSVR"]
    lines = []
    for name in found:
        if name == "AdditiveSVR":
            continue
        ratio = f"{100 * (own / rmse[name] - 1):+.1f} %"
        times = f"{seconds[name] / seconds['AdditiveSVR']:.2g} times its time"
        bar = {"LinearSVR": "below 0 %"}.get(name, "+2 %, 10 times" if "EBM" in name else "")
        lines.append([f"{label}: RMSE against {name}", f"{ratio}, {times}", bar])
    return lines


if __name__ == "__main__":
    main()
