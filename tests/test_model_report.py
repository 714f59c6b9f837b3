"""The page about a model: whole, escaped, self-contained, and readable in a real browser."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from browser import assert_readable, look_at
from html_outline import Outline
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from widemargin import AdditiveSVC, CalibratedSVC, KernelSVC, TableEncoder, write_report
from widemargin.machine import changed_and_default_parameters
from widemargin.mistakes import worst_mistakes
from widemargin.pages import Html, escaped, facts, page, picture, section, table, tag

pytestmark = pytest.mark.slow

EVIL = "<script>alert(1)</script>"


def people(n=600):
    """A table with a hostile column, categories, an interaction, and dollars."""
    rng = np.random.default_rng(0)
    job = rng.choice(["clerk", "smith", EVIL], n)
    table = pd.DataFrame({EVIL: rng.uniform(18, 80, n), "pay $a$": rng.normal(0, 1, n)})
    table["job"] = job
    table["a rather long name of a column that no phone is wide enough for"] = rng.random(n)
    score = (table[EVIL] - 50) / 20 * np.where(job == "clerk", 1, -1) + table["pay $a$"]
    return table, np.where(score > 0, f"{EVIL} & co", "no")


def behind_a_scaler():
    encoder = TableEncoder(scaling=None, sparse_output=False)
    return make_pipeline(encoder, StandardScaler(), AdditiveSVC(random_state=0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def additive(folder):
    X, y = people()
    model = behind_a_scaler().fit(X[:400], y[:400])
    path = folder / "additive.html"
    training = (X[:400], y[:400])
    write_report(model, X, y, path, title=f"{EVIL} of people", training=training,
                 about={"made by": EVIL})  # fmt: skip
    return path


@pytest.fixture(scope="module")
def kernel(folder):
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(MinMaxScaler(), KernelSVC(random_state=0)).fit(X[:500], y[:500])
    path = folder / "kernel.html"
    write_report(model, X[500:900], y[500:900], path, title="Digits")
    return path


def outline(path) -> Outline:
    return Outline(path.read_text(encoding="utf-8"))


ADDITIVE_ONLY = ["Importance", "Shapes", "Pairs that the model misses"]


def test_the_sections_of_an_additive_model(additive):
    found = outline(additive)
    assert found.headings == [
        f"{EVIL} of people", "Scores", "Confusion", "Calibration", *ADDITIVE_ONLY,
        "Worst mistakes", "Convergence", "Data", "Model",
    ]  # fmt: skip
    links = [link["href"] for link in found.found["a"]]
    assert [f"#{name}" for name in found.ids if name in {link[1:] for link in links}] == links


def test_the_sections_of_a_kernel_model(kernel):
    found = outline(kernel)
    assert found.headings == [
        "Digits", "Scores", "Confusion", "Calibration",
        "Worst mistakes", "Convergence", "Data", "Model",
    ]  # fmt: skip
    assert "support vectors" in kernel.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["additive", "kernel"])
def test_a_page_is_self_contained_and_accessible(name, request):
    path = request.getfixturevalue(name)
    text, found = path.read_text(encoding="utf-8"), outline(path)
    assert "script" not in found.found
    assert "img" not in found.found
    without_names = text.replace("http://www.w3.org/1999/xlink", "")
    assert not re.search(r'(?:src|href|url)\s*[=(]\s*"?\s*(?:https?:|//|file:)', without_names)
    assert "http" not in re.sub(r"http-equiv", "", without_names)
    assert len(found.ids) == len(set(found.ids))
    pictures = found.found["svg"]
    assert len(pictures) >= 2
    assert all(len(picture["aria-label"]) > 20 for picture in pictures)
    assert found.found["html"] == [{"lang": "en"}]
    assert any("scope" in cell for cell in found.found["th"])
    for reference in re.findall(r'(?:xlink:href="|url\()#(\w+)', text):
        assert reference in found.ids


def test_hostile_names_are_text_everywhere(additive):
    text = additive.read_text(encoding="utf-8")
    assert EVIL not in text
    escaped_name = "&lt;script&gt;alert(1)&lt;/script&gt;"
    for place in (
        f"<title>{escaped_name} of people</title>",
        f"<h1>{escaped_name}",
        f'scope="col">{escaped_name} &amp; co',
        f"What {escaped_name} adds",
        f'class="text">{escaped_name}',
    ):
        assert place in text
    assert "pay $a$" in text  # in pictures too: no formula


def test_what_the_page_says_is_so(additive):
    X, y = people()
    model = behind_a_scaler().fit(X[:400], y[:400])
    text = additive.read_text(encoding="utf-8")
    assert f"<b>{100 * model.score(X, y):.2f} %</b>" in text
    assert "Nine in ten of 20 copies" in text
    (worst, *_) = worst_mistakes(model, X, y)
    assert f"Row {worst.row + 1:,}: " in text
    assert f"lead {worst.lead:.3g}" in text
    assert (
        f"<td>{EVIL.replace('<', '&lt;').replace('>', '&gt;')} \N{MULTIPLICATION SIGN} job</td>"
        in text
    )
    assert "measured on 600 rows" in text


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["additive", "kernel"])
def test_in_a_browser(name, scheme, width, request, tmp_path):
    page = request.getfixturevalue(name)
    seen = assert_readable(page, width=width, scheme=scheme, folder=tmp_path)
    assert "Worst mistakes" in seen.text


def test_the_browser_sees_what_is_wrong(folder, tmp_path):
    wide = Html('<div style="width: 900px">wide</div><script>alert(1)</script>')
    path = folder / "wrong.html"
    path.write_text(page("Wrong", "", [section("One", wide)]), encoding="utf-8")
    seen = look_at(path, width=360, scheme="light", folder=tmp_path)
    assert seen.width >= 900
    assert seen.wide
    assert any("Content Security Policy" in line for line in seen.console)


# ------------------------------------------------------------------ other models and data


def test_many_classes_are_lists(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.random((600, 3)), np.arange(600) % 30
    write_report(AdditiveSVC(random_state=0, tol=0.1).fit(X, y), X, y, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Most confused" in text
    assert "<summary>by class</summary>" in text
    Outline(text)


def test_sparse_rows_few_rows_and_precomputed_kernels(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((30, 80)) * (rng.random((30, 80)) < 0.2)
    y = np.arange(30) % 2
    for name, model, rows in (
        ("sparse", AdditiveSVC("chi2", random_state=0), sp.csr_array(X)),
        ("precomputed", KernelSVC("precomputed"), X @ X.T),
        ("early", KernelSVC(early=1, random_state=0), X),
        ("one column", AdditiveSVC(random_state=0), X[:, :1]),
    ):
        path = tmp_path / f"{name}.html"
        write_report(model.fit(rows, y), rows, y, path)
        Outline(path.read_text(encoding="utf-8"))
    assert "50 of 80" in (tmp_path / "sparse.html").read_text(encoding="utf-8")
    assert "This needs 40 rows" in (tmp_path / "sparse.html").read_text(encoding="utf-8")
    assert "no recorded steps" in (tmp_path / "early.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="needs at least one row"):
        write_report(model, X[:0, :1], y[:0], tmp_path / "none.html")


def test_a_model_behind_other_steps_than_scalers_has_no_terms(tmp_path):
    X, y = people(200)
    X["job"] = np.where(np.arange(200) % 2, "clerk", "smith")
    numbers = ["pay $a$"]
    columns = ColumnTransformer([("n", "passthrough", numbers), ("j", OneHotEncoder(), ["job"])])
    model = make_pipeline(columns, AdditiveSVC(random_state=0)).fit(X, y)
    write_report(model, X, y, tmp_path / "r.html")
    found = outline(tmp_path / "r.html")
    assert not set(ADDITIVE_ONLY) & set(found.headings)
    assert "2 categories" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_shapes_have_no_band_for_many_classes_and_constant_columns_none_at_all(tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = np.c_[X[:200, 20:22], np.ones(200)], y[:200]
    model = AdditiveSVC(random_state=0).fit(X, y)
    write_report(model, X, y, tmp_path / "r.html", training=(X, y))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "band" not in text
    assert [f"What feature {j} adds" in text for j in range(3)] == [True, True, False]


def test_probabilities_are_compared_with_shares(tmp_path):
    X, y = people(300)
    model = CalibratedSVC(AdditiveSVC(random_state=0)).fit(X, y)
    write_report(model, X, y, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "differ from observed frequencies by" in text
    assert "Shapes" in text
    with pytest.raises(ValueError, match="takes AdditiveSVC or KernelSVC, not SVC"):
        write_report(SVC().fit(X[["pay $a$"]], y), X, y, tmp_path / "r.html")


def test_an_unconverged_fit_is_said(tmp_path):
    X, y = people(200)
    with pytest.warns(match="stopped after"):
        model = AdditiveSVC(max_iter=1, tol=1e-8, random_state=0).fit(X, y)
    write_report(model, X, y, tmp_path / "r.html")
    assert "stopped above its tolerance" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_report_is_the_same_each_time(tmp_path):
    X, y = people(200)
    model = AdditiveSVC(random_state=0).fit(X, y)
    pages = []
    for name in ("a", "b"):
        write_report(model, X, y, tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        pages.append(re.sub(r"<div><b>[^<]+ \N{MICRO SIGN}s</b>", "", text))  # the time it took
    assert pages[0] == pages[1]


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mistakes_are_the_surest_ones_and_their_reasons_add_up(n_classes):
    rng = np.random.default_rng(0)
    X = rng.random((300, 4))
    y = np.digitize(X[:, 0] + rng.normal(0, 0.2, 300), np.linspace(0, 1, n_classes + 1)[1:-1])
    model = AdditiveSVC(random_state=0).fit(X, y)
    found = worst_mistakes(model, X, y, most=7)
    assert len(found) == 7
    scores = model.decision_function(X)
    wrong = np.flatnonzero(model.predict(X) != y)
    lead = np.abs(scores) if n_classes == 2 else scores.max(axis=1) - scores[np.arange(300), y]
    expected = wrong[np.argsort(-lead[wrong])][:7]
    assert [mistake.row for mistake in found] == expected.tolist()
    for mistake in found:
        assert mistake.truth == y[mistake.row] != mistake.predicted
        assert mistake.lead == pytest.approx(lead[mistake.row])
        total = sum(reason.contribution for reason in mistake.reasons)
        assert total == pytest.approx(mistake.lead, abs=1e-5)
        for reason in mistake.reasons[:-1]:
            assert reason.value == X[mistake.row, int(reason.name.split()[1])]


def test_labels_that_the_model_does_not_know_are_no_mistakes():
    X = np.random.default_rng(0).random((100, 2))
    model = AdditiveSVC(random_state=0).fit(X, X[:, 0] > 0.5)
    assert worst_mistakes(model, X, np.full(100, 7)) == []
    assert all(
        m.reasons == () for m in worst_mistakes(KernelSVC().fit(X, X[:, 0] > 0.5), X, X[:, 1] > 0.5)
    )


# ------------------------------------------------------------------ pieces of pages


def test_only_markup_is_markup():
    assert escaped("a<b & 'c'") == "a&lt;b &amp; &#x27;c&#x27;"
    assert tag("p", "<", Html("<b>x</b>"), class_='"') == '<p class="&quot;">&lt;<b>x</b></p>'
    cells = table(["<"], [["<i>"], [Html('<td class="x">1</td>')], [0.123456], [12345]], "<c>")
    for part in ('scope="col">&lt;</th>', "<td>&lt;i&gt;</td>", '<td class="x">1</td>',
                 "<td>0.1235</td>", "<td>12,345</td>", "<caption>&lt;c&gt;</caption>",
                 'aria-label="&lt;c&gt;"'):  # fmt: skip
        assert part in cells
    assert "&lt;k&gt;" in facts({"<k>": "<v>"})


def test_the_title_of_a_column_stands_where_its_cells_do():
    text = tag("td", "C=1", class_="text")
    told = table(["name", "n", "said", "none"], [["a", 1, text, ""], ["b", 2, "", ""]], "caption")
    assert '<th scope="col">n</th><th scope="col" class="text">said</th>' in told
    assert '<th scope="col">none</th>' in told
    assert '<th scope="col">n</th>' in table(["n"], [], "caption")


def test_a_picture_takes_the_colours_of_the_page():
    drawn = picture(lambda ax: ax.set_title("<t>"), 'a "picture"', caption="<c>")
    assert 'aria-label="a &quot;picture&quot;"' in drawn
    assert "currentColor" in drawn
    assert "#010203" not in drawn
    assert "&lt;t&gt;" in drawn
    assert "<figcaption>&lt;c&gt;</figcaption>" in drawn
    assert "<?xml" not in drawn
    assert "<style" not in drawn


def test_texts_of_any_script_are_left_to_the_reader_s_fonts():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "\N{CJK UNIFIED IDEOGRAPH-5E74}" in picture(
            lambda ax: ax.set_title("\N{CJK UNIFIED IDEOGRAPH-5E74}"), "a year"
        )


@pytest.mark.parametrize("make", [np.array, list, pd.Index])
def test_parameters_that_are_arrays_are_shown(make):
    machine = AdditiveSVC(categorical_features=make(["job", "town"]), C=np.float64(1.0))
    changed, same = changed_and_default_parameters(machine)
    assert list(changed) == ["categorical_features"]
    assert same["C"] == 1.0
