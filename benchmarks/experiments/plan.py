"""What an experiment is: a small file of data, methods, grids and seeds, and the fits it asks for.

One TOML file per table or figure in ``tables/``:

    title, source, note        what it is, and which table of which paper
    data                       functions in benchmarks/data.py or images.py
    rows, test_rows, scale     at most so many rows, chosen at random; [low, high] per feature
    seeds, repeats, threads    one fit for each seed and repeat
    limit                      seconds after which a fit is killed
    measure, features          more than accuracy, times and memory: see measures.py
    [[method]]                 name, use (in benchmarks/methods.py), parameters
        vary                   lists of values: one fit for each combination
        tune                   lists of values: the best on held-out training rows
    published                  what the paper prints, for a method, data and parameters
    reasons                    why figures differ from it: such keys, and why = "..."
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path

TABLES = Path(__file__).parent / "tables"
QUICK_ROWS, QUICK_LIMIT = 1000, 60.0
PRINTED = {"accuracy", "seconds", "test_ms", "max_error", "mean_error"}  # figures of a paper


@dataclass(frozen=True)
class Method:
    """A line of a table."""

    name: str
    use: str
    parameters: dict = field(default_factory=dict)
    vary: dict[str, list] = field(default_factory=dict)
    tune: dict[str, list] = field(default_factory=dict)

    def settings(self) -> Iterator[dict]:
        """Parameters, for each combination of those that vary."""
        for values in product(*self.vary.values()):
            yield self.parameters | dict(zip(self.vary, values, strict=True))


@dataclass(frozen=True)
class Experiment:
    """A table or a figure."""

    name: str
    title: str
    source: str
    data: list[str]
    methods: list[Method]
    note: str = ""
    rows: int | None = None
    test_rows: int | None = None
    scale: list[float] | None = None
    seeds: list[int] = field(default_factory=lambda: [0])
    repeats: int = 1
    threads: int = 1
    limit: float = 600.0
    measure: list[str] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    published: list[dict] = field(default_factory=list)
    reasons: list[dict] = field(default_factory=list)

    def printed(self, method: str, data: str, parameters: dict) -> dict:
        """What the paper prints for such a fit: of the rows whose every key fits."""
        return self._first(self.published, PRINTED, parameters | {"method": method, "data": data})

    def reason(self, method: str, data: str, parameters: dict) -> str:
        """Why such a fit differs from the paper's; empty where the file does not say."""
        known = parameters | {"method": method, "data": data}
        return self._first(self.reasons, {"why"}, known).get("why", "")

    @staticmethod
    def _first(rows: list[dict], told: set[str], known: dict) -> dict:
        for row in rows:
            if all(known.get(key) == value for key, value in row.items() if key not in told):
                return {key: value for key, value in row.items() if key in told}
        return {}


@dataclass(frozen=True)
class Cell:
    """One fit: all that its process needs to know."""

    experiment: str
    data: str
    method: str
    use: str
    parameters: dict
    stage: str  # "tune": on a part of the training rows, scored on the rest; "test"
    seed: int = 0
    repeat: int = 0
    rows: int | None = None
    test_rows: int | None = None
    scale: list[float] | None = None
    threads: int = 1
    measure: list[str] = field(default_factory=list)
    features: list[int] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Names the fit by all that it was asked for, so that finished ones are found again."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def names() -> list[str]:
    """All experiments.

    >>> "icd_table5" in names()
    True
    """
    return sorted(path.stem for path in TABLES.glob("*.toml"))


def read(name: str, folder: Path = TABLES) -> Experiment:
    """The experiment of that name; what its file says too much or wrongly is an error."""
    path = folder / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
        raise ValueError(f"There is no experiment {name!r}; there are {known}.")
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    methods = [_method(path, line) for line in content.pop("method", [])]
    if not methods:
        raise ValueError(f"{path.name}: no [[method]].")
    _known(path, content, Experiment, {"name", "methods"})
    experiment = Experiment(name=name, methods=methods, **content)
    if not experiment.limit > 0:  # a timer of 0 s never ends
        raise ValueError(f"{path.name}: limit = {experiment.limit:g}: use seconds above 0.")
    _check_published(path, experiment)
    return experiment


def _method(path: Path, line: dict) -> Method:
    _known(path, line, Method, set())
    if "name" not in line:
        raise ValueError(f"{path.name}: a [[method]] without a name.")
    both = set(line.get("vary", {})) & set(line.get("tune", {}))
    if both:
        raise ValueError(f"{path.name}: {line['name']} both varies and tunes {min(both)}.")
    for name, values in line.get("tune", {}).items():
        if len(values) < 2 or not all(isinstance(v, int | float) and v > 0 for v in values):
            raise ValueError(f"{path.name}: tune.{name} takes two positive numbers or more.")
    return Method(**{"use": line["name"], **line})


def _known(path: Path, content: dict, kind: type, own: set[str]) -> None:
    wrong = set(content) - ({f.name for f in fields(kind)} - own)
    if wrong:
        raise ValueError(f"{path.name}: unknown key {min(wrong)!r}.")


def _check_published(path: Path, experiment: Experiment) -> None:
    """Every number of the paper and every reason must belong to a fit, or it is a slip."""
    fits = [
        settings | {"method": method.name, "data": data}
        for method in experiment.methods
        for settings in method.settings()
        for data in experiment.data
    ]
    for kind, rows, told in (
        ("published", experiment.published, PRINTED),
        ("reason of", experiment.reasons, {"why"}),
    ):
        for row in rows:
            keys = {k: v for k, v in row.items() if k not in told}
            if not any(all(fit.get(k) == v for k, v in keys.items()) for fit in fits):
                raise ValueError(f"{path.name}: no fit for the {kind} {keys}.")


def quickened(experiment: Experiment) -> Experiment:
    """Few rows, the ends of what varies, and half of each grid: to see that it works."""

    def ends(values: list) -> list:
        return values if len(values) < 3 else [values[0], values[-1]]

    methods = [
        replace(
            m,
            vary={name: ends(values) for name, values in m.vary.items()},
            tune={name: values[: max(2, len(values) // 2)] for name, values in m.tune.items()},
        )
        for m in experiment.methods
    ]
    return replace(
        experiment,
        methods=methods,
        rows=min(experiment.rows or QUICK_ROWS, QUICK_ROWS),
        test_rows=min(experiment.test_rows or QUICK_ROWS, QUICK_ROWS),
        seeds=experiment.seeds[:1],
        repeats=1,
        limit=min(experiment.limit, QUICK_LIMIT),
    )


def cell(experiment: Experiment, data: str, method: Method, parameters: dict, stage: str) -> Cell:
    """One fit of an experiment, with its first seed."""
    more = experiment.measure if stage == "test" else []
    return Cell(
        experiment=experiment.name,
        data=data,
        method=method.name,
        use=method.use,
        parameters=parameters,
        stage=stage,
        seed=experiment.seeds[0],
        rows=experiment.rows,
        test_rows=experiment.test_rows,
        scale=experiment.scale,
        threads=experiment.threads,
        measure=list(more),
        features=list(experiment.features) if more else [],
    )
