"""An experiment whose fits cost nothing."""

from dataclasses import replace
from math import inf, log10

from benchmarks.experiments.plan import Cell, Experiment, Method
from benchmarks.experiments.runner import Runner
from benchmarks.experiments.schedule import Schedule
from benchmarks.experiments.store import Results

DIGITS = Cell("here", "digits", "ICD", "ICD", {"C": 0.001}, "test", rows=300, test_rows=100)


def experiment(**changes) -> Experiment:
    method = Method("LIBLINEAR", "LIBLINEAR", tune={"C": [0.1, 1.0, 10.0]})
    return replace(Experiment("here", "A title", "A paper", ["digits"], [method]), **changes)


class Pretended:
    """Fits that cost nothing: the accuracy is a function of the parameters."""

    def __init__(self, accuracy=lambda parameters: 0.5, status="done"):
        self.accuracy, self.status, self.cells = accuracy, status, []

    def __call__(self, cell, limit):
        self.cells.append(cell)
        if self.status != "done":
            return {"status": self.status, "message": "pretended"}
        figures = dict.fromkeys(("fit_seconds", "fit_megabytes", "predict_seconds"), 1.0)
        return {"status": "done", "message": "", "accuracy": self.accuracy(cell.parameters),
                **figures, "details": {"gap": 0.25}}  # fmt: skip


def near(best):
    return lambda parameters: 1 - abs(log10(parameters["C"] / best)) / 100


def ran(tmp_path, fit, wanted=None, jobs=1, budget=inf, **options):
    """The rows of an experiment whose fits are pretended."""
    results = Results(tmp_path / "here.parquet")
    runner = Runner(wanted or experiment(), results, lambda text: None, fit=fit, **options)
    schedule = Schedule([runner], jobs, budget)
    schedule.run()
    results.collect()
    return schedule.rows(runner)
