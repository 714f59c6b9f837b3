"""The commands tune and easy."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import typer

from widemargin.auto import AutoSVC, AutoSVR
from widemargin.choice import Choice
from widemargin.cli.datasets import (
    check_folder,
    default_model,
    densified_for,
    labels_of,
    read_training,
    save_model,
)
from widemargin.cli.making import (
    WITH_GAMMA,
    class_weights,
    kernel_name,
    make_estimator,
    make_scaler,
    match_weights,
)
from widemargin.cli.options import Output, Search, Source, Wanted
from widemargin.cli.output import INTERRUPTED, print_facts, print_json, save_figure
from widemargin.cli.predict import errors_on, evaluate_on, evaluation, print_evaluation
from widemargin.cli.progress import (
    FitBar,
    Interrupt,
    SearchBar,
    TimeBar,
    clock,
    line,
    noticing_ctrl_c,
)
from widemargin.cli.tasks import check_task, task_of
from widemargin.cli.train import calibrated, fit_with_progress
from widemargin.cli.trials import (
    STAR,
    as_fields,
    check_score,
    described,
    print_trials,
    progress_line,
    reservation,
)
from widemargin.cli.words import UsageError, numbers, said
from widemargin.errors import warn_user
from widemargin.persistence import read_header
from widemargin.search import MOST_ROWS
from widemargin.selection import (
    Candidate,
    Trial,
    behind_scaler,
    check_folds,
    ranked,
    sample_rows,
    tune,
)
from widemargin.table_encoder import encoding

Trials = Generator[list[Trial]]  # yields the trials of one candidate at a time


@dataclass(frozen=True)
class _Comparison:
    """Settings of a comparison: score, values of C, folds, drawing."""

    scoring: str
    Cs: Sequence[float]
    folds: int
    seed: int | None


def tune_models(
    data: Path, model: Path | None, search: Search, source: Source, output: Output
) -> None:
    Cs = numbers(search.Cs, "--Cs")
    check_task(search.task)
    if search.task == "one-class":
        raise UsageError("--task one-class has no labels to tune on. Use train.")
    if search.scoring is not None:
        check_score(search.scoring, probabilities=search.probability)
    names = [kernel_name(word.strip()) for word in search.kernels.split(",")]
    task = search.task or "classes"
    candidates = list(_candidates(names, search, Cs, source.jobs, task))
    path = check_folder(model or default_model(data))
    given = names == ["precomputed"]
    dataset, memory = read_training(data, source, output, kernel_values=given)
    X, y = dataset.X, labels_of(dataset)
    if search.task is None and task_of(y) == "numbers":
        task = "numbers"
        candidates = list(_candidates(names, search, Cs, source.jobs, task))
    numbers_wanted = task == "numbers"
    if numbers_wanted and search.probability:
        raise UsageError("--probability cannot be combined with --task numbers.")
    scoring = search.scoring or ("r2" if numbers_wanted else "accuracy")
    check_score(scoring, y, probabilities=search.probability, numbers=numbers_wanted)
    compared = _Comparison(scoring, Cs, search.folds, search.random_state)
    candidates = [replace(c, scaler=encoding(X, c.scaler, c.estimator)) for c in candidates]
    for candidate in candidates:
        match_weights(candidate.estimator, y)
    rows = sample_rows(X, y, search.rows or X.shape[0], compared.seed)
    check_folds(y[rows], search.folds, numbers=numbers_wanted)
    quiet = output.quiet or output.as_json
    with noticing_ctrl_c() as interrupt:
        found = _search(candidates, X, y, rows, compared, interrupt, quiet=quiet)
        found, fitted = _trained(found, X, y, interrupt, output)
        save_model(fitted, path, memory)
    if search.plot is not None:
        from widemargin.plots import plot_search

        save_figure(plot_search(found.trials).figure, search.plot)
    if output.as_json:
        print_json(found.as_fields(path))
    elif not output.quiet:
        print_trials(found.trials)
        best = "best so far" if found.interrupted else "best"
        trained = f"trained on all {X.shape[0]} rows{found.how_far}: {path}"
        print(f"\n{best}: {described(found.trials[0])}; {trained}")
    _end(found)


def _end(found: _Found) -> None:
    """Exit with status 130 if Ctrl-C cut the search short."""
    if found.interrupted or found.cut_short:
        raise typer.Exit(INTERRUPTED)


def _candidates(
    kernels: list[str], search: Search, Cs: Sequence[float], jobs: int | None, task: str
) -> Iterator[Candidate]:
    """Combine every kernel with every value of its parameter."""
    listed = ",".join(kernels)
    gammas = numbers(search.gammas, "--gammas") if search.gammas else None
    powers = numbers(search.powers, "--powers") if search.powers else None
    if gammas and not set(kernels) & set(WITH_GAMMA):
        raise UsageError(f"--gammas cannot be combined with --kernels {listed}.")
    if powers and "power_mean" not in kernels:
        raise UsageError(f"--powers cannot be combined with --kernels {listed}.")
    if "precomputed" in kernels and len(kernels) > 1:
        raise UsageError(f"--kernels {listed}: data are features, or they are kernel values.")
    common = search.common() | {"n_jobs": jobs}
    for kernel in kernels:
        name: str = ""
        values: Sequence[float | None] = [None]
        if kernel == "power_mean":
            name, values = "power", powers or [-0.5, -1.0, -2.0, -8.0]
        elif kernel in WITH_GAMMA and gammas:
            name, values = "gamma", gammas
        scaler = make_scaler(search.scale, kernel)
        for value in values:
            own = {name: value} if name else {}
            machine, *_ = [make_estimator(kernel, {**common, **own, "C": C}, task=task) for C in Cs]
            yield Candidate({"kernel": kernel, **own}, machine, scaler, search.probability)


def _densified(candidate: Candidate, X):
    return densified_for(behind_scaler(candidate.scaler, candidate.estimator), X)


@dataclass(frozen=True)
class _Found:
    """Trials of a search, the best first; incomplete after Ctrl-C.

    ``cut_short`` tells whether Ctrl-C ended the last fit.
    """

    trials: list[Trial]
    interrupted: bool = False
    cut_short: bool = False

    @property
    def how_far(self) -> str:
        return " as far as it came" if self.cut_short else ""

    def as_fields(self, path: Path) -> dict:
        trials = [as_fields(trial) for trial in self.trials]
        found = {"model": str(path), "best": trials[0], "trials": trials}
        return found | ({"interrupted": True} if self.interrupted or self.cut_short else {})


def _search(
    candidates: list[Candidate],
    X,
    y,
    rows: np.ndarray,
    compared: _Comparison,
    interrupt: Interrupt,
    *,
    quiet: bool,
) -> _Found:
    """Tune on some rows; print why a candidate that rejects the data is left out."""

    def tried() -> Trials:
        with line(quiet) as shown:
            bar = SearchBar(shown, len(candidates) * compared.folds)
            for k, candidate in enumerate(candidates):
                bar.begin(candidate.name, k * compared.folds)
                candidate.estimator.set_callbacks(interrupt)
                try:
                    yield _tried(candidate, X, y, rows, compared, bar)
                finally:
                    candidate.estimator.set_callbacks()

    return _collected(tried(), interrupt, quiet=quiet)


def _collected(tried: Trials, interrupt: Interrupt, *, quiet: bool) -> _Found:
    """Collect the trials, print them candidate by candidate, and return them sorted.

    NumPy may lose Ctrl-C or turn it into another error, so it is remembered: fits end
    soon after, and what they have left is no trial.  From the end of the search on it is a wish.
    """
    trials: list[Trial] = []
    with closing(tried) as all_trials:
        try:
            for own in all_trials:
                if interrupt.asked:
                    break
                trials += own
                if own and not quiet:
                    print(progress_line(own), file=sys.stderr)
            interrupt.raises = False
        except KeyboardInterrupt:
            interrupt.raises, interrupt.asked = False, True
        except Exception:
            if not interrupt.asked:
                raise
            interrupt.raises = False
    if interrupt.asked:
        if not trials:
            raise KeyboardInterrupt
        found = _Found(ranked(trials), interrupted=True)
        if not quiet:
            _say_interrupted(found.trials[0])
        return found
    if not trials:
        raise ValueError("No candidate could be trained on this data.")
    trials = ranked(trials)
    doubt = reservation(trials)
    if doubt:
        warn_user(doubt)
    return _Found(trials)


def _say_interrupted(best: Trial) -> None:
    said = f"interrupted: {described(best)} is the best so far. It is trained on all rows now;"
    print(said, "Ctrl-C again ends without a model.", file=sys.stderr)


def _tried(
    candidate: Candidate, X, y, rows: np.ndarray, compared: _Comparison, bar: SearchBar
) -> list[Trial]:
    """Return the trials of one candidate; none if it rejects the data."""
    try:
        part = candidate.part(_densified(candidate, X), rows)
        return tune(
            [candidate],
            part,
            y[rows],
            compared.Cs,
            folds=compared.folds,
            random_state=compared.seed,
            scoring=compared.scoring,
            on_fold=bar.fold,
        )
    except ValueError as error:
        warn_user(f"{candidate.name} is left out: {said(error)}")
        return []


def _trained(found: _Found, X, y, interrupt: Interrupt, output: Output):
    """Train the winner on all rows and return it with the trials."""
    best = found.trials[0].candidate
    rows = _densified(best, X)
    found, fitted = _fitted(found, best, rows, y, output, interrupt)
    if best.probability and not found.cut_short:
        fitted = calibrated(fitted, rows, y, quiet=output.quiet or output.as_json)
    return found, fitted


def _fitted(found: _Found, candidate: Candidate, X, y, output: Output, interrupt: Interrupt):
    """Fit a candidate at its best C, with progress and other callbacks.

    The first Ctrl-C of a command keeps a model: of this fit that as far as it came.
    """
    own = candidate.unfitted(found.trials[0].C)
    try:
        if found.interrupted:
            return found, fit_with_progress(*own, X, y, quiet=output.quiet)
        fitted = fit_with_progress(*own, X, y, interrupt, quiet=output.quiet)
        return replace(found, cut_short=interrupt.asked), fitted
    except KeyboardInterrupt:  # keep the results so far
        if not (output.quiet or output.as_json):
            print_trials(found.trials)
        raise


def easy(
    train_path: Path,
    test_path: Path | None,
    model: Path | None,
    wanted: Wanted,
    source: Source,
    output: Output,
    began: float,
) -> None:
    """Fit `AutoSVC`, or `AutoSVR` to numbers, write its model and report.

    The time limit counts from ``began``, the start of the command, imports included.
    """
    if wanted.scoring is not None:
        check_score(wanted.scoring)
    class_weights(wanted.weight)  # fail before reading data
    path = check_folder(model or default_model(train_path))
    if test_path is not None:
        test_path.stat()  # a missing test file fails before the training
    dataset, memory = read_training(train_path, source, output)
    y = labels_of(dataset)
    auto = _chooser(y, wanted, source.jobs)
    quiet = output.quiet or output.as_json
    if not quiet:
        print(_planned(len(y), wanted.minutes), file=sys.stderr)
    auto.set_params(max_seconds=max(began + 60 * wanted.minutes - time.monotonic(), 0.01))
    with noticing_ctrl_c() as interrupt, line(quiet) as shown:
        bar = ChoiceBar(shown, auto.max_seconds, interrupt, quiet=quiet)
        auto.set_callbacks(interrupt, bar).fit(dataset.X, y)
        fitted = getattr(auto, "calibrated_estimator_", auto.best_estimator_)
        save_model(fitted, path, memory)
    cut_short = interrupt.asked and not bar.interrupted
    found, where = _Found(auto.ranking_, bar.interrupted, cut_short), None
    if test_path is not None:
        where = (test_path, source, read_header(path), fitted)
    if output.as_json:
        test = {} if where is None else {"test": _tested(auto, where)}
        print_json(found.as_fields(path) | test)
    else:
        _print_choice(auto, f"{found.how_far}: {path}", where, output)
    _end(found)


def _chooser(y: np.ndarray, wanted: Wanted, jobs: int | None) -> AutoSVC | AutoSVR:
    """Return what suits the labels: `AutoSVR` where some are not whole numbers."""
    if task_of(y) == "numbers":
        for option, given in (("--scoring", wanted.scoring), ("--weight", wanted.weight)):
            if given:
                raise UsageError(f"{option} is for classes, and the labels are numbers.")
        return AutoSVR(n_jobs=jobs, random_state=0)
    weights = class_weights(wanted.weight)
    auto = AutoSVC(scoring=wanted.scoring, class_weight=weights, n_jobs=jobs, random_state=0)
    match_weights(auto, y)
    if wanted.scoring is not None:
        check_score(wanted.scoring, y)
    return auto


def _tested(auto: AutoSVC | AutoSVR, where: tuple) -> dict:
    return errors_on(*where) if isinstance(auto, AutoSVR) else evaluation(evaluate_on(*where))


def _print_choice(
    auto: AutoSVC | AutoSVR, how_far_and_where: str, where: tuple | None, output: Output
) -> None:
    if not output.quiet:
        if any(trial.unconverged for trial in auto.ranking_):
            print(STAR, file=sys.stderr)
        for name, seconds in auto.untried_.items():
            print(f"not tried for lack of time: {name} (about {clock(seconds)})", file=sys.stderr)
        first = auto.ranking_[0]
        print(f"best of {len(auto.ranking_)} on {first.rows} rows: {described(first)}")
        print(f"{auto.trained_on_}{how_far_and_where}" + "\n" * (where is not None))
    if where is None:
        return
    if isinstance(auto, AutoSVR):
        print_facts(errors_on(*where))
    else:
        print_evaluation(evaluate_on(*where))


class ChoiceBar(FitBar):
    """Prints candidates, draws the time spent, and then the progress of the final fit.

    From the final fit on, the first Ctrl-C is a wish.
    """

    max_propagation_depth = None  # it hears the final fit's tasks too

    def __init__(self, line, seconds: float, interrupt: Interrupt, *, quiet: bool):
        super().__init__(line)
        self._seconds, self._interrupt, self._quiet = seconds, interrupt, quiet
        self.interrupted = False  # in the search

    def setup(self, estimator, context) -> None:
        TimeBar(self._line, "comparing kernels", self._seconds)

    def on_fit_task_begin(self, estimator, context) -> None:
        if not isinstance(estimator, Choice):
            super().on_fit_task_begin(estimator, context)
        elif context.task_name == "choice":
            self._interrupt.raises, self.interrupted = False, self._interrupt.asked
            if self.interrupted and not self._quiet:
                _say_interrupted(context.trials[0])

    def on_fit_task_end(self, estimator, context) -> None:
        if not isinstance(estimator, Choice):
            super().on_fit_task_end(estimator, context)
        elif context.task_name == "candidate" and not self._quiet:
            print(progress_line(context.trials), file=sys.stderr)


def _planned(n: int, minutes: float) -> str:
    rows = f"{n} row{'s' * (n != 1)}" if n <= MOST_ROWS else f"{MOST_ROWS} of {n} rows at most"
    most = f"{minutes:g} minute" + "s" * (minutes != 1)
    return f"comparing kernels on {rows}, then training the best on all, for {most} at most"
