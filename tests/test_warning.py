"""Every warning points at the line of the program that called this package, however deep it was."""

import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.callback import ProgressBar
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from typer.main import get_command

import widemargin
from widemargin import AdditiveMap, AdditiveSVC, KernelSVC, read
from widemargin.cli import output
from widemargin.cli.app import app
from widemargin.errors import warn_user

X, Y = load_iris(return_X_y=True)
TWO, SIGN = X[50:], Y[50:]


@contextmanager
def warns_here(match: str, category: type[Warning] = UserWarning):
    """The body, one line, warns; and every such warning is said to come from that line."""
    line = inspect.currentframe().f_back.f_back.f_lineno + 1
    with pytest.warns(category, match=match) as caught:
        yield
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, line)}


def indefinite(x, y):
    return np.maximum(x, y)


MACHINES = [
    (AdditiveSVC(max_iter=1, tol=1e-9, random_state=0), "stopped after 1 sweep "),
    (KernelSVC(max_iter=1, tol=1e-6), "stopped with a relative duality gap"),
]


@pytest.mark.parametrize(("machine", "message"), MACHINES)
def test_fit(machine, message):
    with warns_here(message, ConvergenceWarning):
        machine.fit(TWO, SIGN)


@pytest.mark.parametrize(("machine", "message"), MACHINES)
def test_fit_path(machine, message):
    with warns_here(message, ConvergenceWarning):
        machine.fit_path(TWO, SIGN, [0.1, 1.0])


@pytest.mark.parametrize(("machine", "message"), MACHINES)
def test_fit_within_scikit_learns_own_estimators(machine, message):
    pipeline = make_pipeline(MinMaxScaler(), machine)
    with warns_here(message, ConvergenceWarning):
        pipeline.fit(TWO, SIGN)
    search = GridSearchCV(pipeline, {f"{pipeline.steps[-1][0]}__C": [1.0]}, cv=2)
    with warns_here(message, ConvergenceWarning):
        search.fit(TWO, SIGN)


def test_fit_with_callbacks():
    machine = AdditiveSVC(max_iter=1, tol=1e-9, random_state=0).set_callbacks(ProgressBar())
    with warns_here("stopped after 1 sweep ", ConvergenceWarning):
        machine.fit(TWO, SIGN)


@pytest.mark.parametrize("estimator", [AdditiveSVC(indefinite), AdditiveMap(indefinite)])
def test_a_kernel_that_is_not_positive_definite(estimator):
    with warns_here("not positive semi-definite"):
        estimator.fit(TWO, SIGN)


def test_the_sigmoid_kernel():
    machine = KernelSVC("sigmoid", gamma=0.01)
    with warns_here("not positive semi-definite"):
        machine.fit(TWO, SIGN)
    with warns_here("not positive semi-definite"):
        machine.fit_path(TWO, SIGN, [1.0])


def test_an_unscaled_feature():
    with warns_here("Feature 0 ranges from"):
        KernelSVC(gamma="scale", tol=0.5).fit(TWO * [1000, 1, 1, 1], SIGN)


def test_a_warm_start_that_does_not_suit():
    machine = AdditiveSVC(warm_start=True, random_state=0).fit(TWO, SIGN)
    with warns_here("starting afresh"):
        machine.fit(X, Y)


def test_a_damaged_checkpoint(tmp_path):
    machine = KernelSVC(checkpoint=tmp_path).fit(TWO, SIGN)
    for path in tmp_path.rglob("*.part"):
        path.write_bytes(b"")
    with warns_here("truncated or damaged"):
        machine.fit(TWO, SIGN)


def test_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with warns_here("the model does not"):
        read(path, columns=["a"])


def test_the_command_line(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(output, "_warn", lambda message, category, *place: seen.append(place[:2]))
    path = tmp_path / "table.csv"
    np.savetxt(path, np.c_[SIGN, TWO], delimiter=",", header="label,a,b,c,d", comments="")
    program = get_command(app)
    words = ["train", str(path), str(tmp_path / "model"), "--max-iter", "1", "--tol", "1e-6", "-q"]
    line = inspect.currentframe().f_lineno + 2
    with pytest.raises(SystemExit):
        program(words)
    assert seen == [(__file__, line)]


# ------------------------------------------------------------------ the rule itself


def test_the_category_is_that_given():
    with pytest.warns(FutureWarning, match="soon"):
        warn_user("soon", FutureWarning)
    with pytest.warns(UserWarning, match="now"):
        warn_user("now")


def test_each_line_of_a_program_is_warned_once(tmp_path):
    """Python's default filter keeps one of a line's warnings; two lines are two places."""
    program = tmp_path / "program.py"
    program.write_text(
        "from widemargin.errors import warn_user\n"
        "for _ in range(3):\n"
        "    warn_user('one')\n"
        "warn_user('one')\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    places = [line for line in done.stderr.splitlines() if "UserWarning" in line]
    assert places == [f"{program}:{n}: UserWarning: one" for n in (3, 4)]


def test_a_thread_of_the_users():
    def work():
        with warns_here("not positive semi-definite"):
            KernelSVC("sigmoid", gamma=0.01).fit(TWO, SIGN)

    with ThreadPoolExecutor(1) as executor:
        executor.submit(work).result()


def test_a_thread_without_a_line_of_the_users():
    """Where the caller cannot be known, the place is in the package and not beyond the stack."""
    machine = KernelSVC("sigmoid", gamma=0.01)
    expected = pytest.warns(UserWarning, match="not positive semi-definite")
    with ThreadPoolExecutor(1) as executor, expected as caught:
        executor.submit(machine.fit, TWO, SIGN).result()
    assert Path(widemargin.__file__).parent in Path(caught[0].filename).parents


def test_no_other_way_to_warn():
    """No file counts stack levels by hand."""
    package = Path(widemargin.__file__).parent
    sources = {p.relative_to(package): p.read_text() for p in package.rglob("*.py")}
    assert [str(p) for p, text in sources.items() if "warnings.warn(" in text] == ["errors.py"]
