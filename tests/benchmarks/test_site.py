"""The pages of experiments: what they say is in the results, and a browser can show them."""

import re
from dataclasses import replace

import pytest
from benchmarks.competitors import COMPETITORS
from benchmarks.experiments import plan
from benchmarks.experiments.__main__ import main
from benchmarks.experiments.charts import charts
from benchmarks.experiments.cuts import cuts
from benchmarks.experiments.experiment_page import experiment_page
from benchmarks.experiments.lines import Line, in_order, labels, lines_of, not_run
from benchmarks.experiments.methods_page import words
from benchmarks.experiments.ranks import standings
from benchmarks.experiments.runner import Runner
from benchmarks.experiments.schedule import Schedule
from benchmarks.experiments.store import Results
from benchmarks.methods import METHODS
from browser import assert_readable
from html_outline import Outline

DETAILS = {"load": 3.0, "iterations": 7, "dual_objective": 12345.678}
EVIL = "<script>alert(1)</script>"
NAMES = ["icd_table5", "lut_table3", "dcsvm_table1", "dcsvm_figure1"]
PAGES = ["index", "methods", *NAMES]
ICD = {"ijcnn1": 0.9480, "shuttle_signed": 0.9962}  # the paper has 94.82 and 99.50


def pretended(cell, limit):
    """Fits that cost nothing; BCM always fails, with a hostile message."""
    if cell.method == "BCM":
        return {"status": "failed", "message": EVIL}
    accuracy = ICD[cell.data] if cell.method == "ICD" else 0.7 + 0.002 * len(cell.method)
    levels = [{"level": 1, "n_clusters": 58, "bound": float("nan")}]
    return {
        "status": "done", "message": "", "accuracy": accuracy, "fit_seconds": 0.25 + cell.repeat,
        "predict_seconds": 0.5, "fit_megabytes": 12.0, "train_rows": 4000, "scored_rows": 1000,
        "details": {"gap": 0.000625, "levels": levels},
    }  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name in NAMES:
        kept = Results(folder / f"{name}.parquet")
        Schedule([Runner(plan.read(name), kept, lambda text: None, fit=pretended)]).run()
    return folder


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "new"
    assert main(["--out", str(results), "--site", str(folder)]) == 0
    return folder


def read(site, name):
    return (site / f"{name}.html").read_text(encoding="utf-8")


def cells(text: str, first: str) -> list[str]:
    """Of the table's row that begins with this text."""
    for row in re.findall(r"<tr>(.*?)</tr>", text):
        found = [re.sub(r"<[^>]+>", "", c) for c in re.findall(r"<td.*?</td>", row)]
        if found and found[0].startswith(first):
            return found
    raise AssertionError(f"no row {first}")


def test_there_is_a_page_for_each_and_every_link_leads_somewhere(site):
    assert {path.stem for path in site.glob("*.html")} == set(PAGES)
    outlines = {name: Outline(read(site, name)) for name in PAGES}
    for name, found in outlines.items():
        for link in found.found["a"]:
            page, _, place = link["href"].partition("#")
            target = outlines[page.removesuffix(".html") or name]
            assert not place or place in target.ids, f"{name} links to {link['href']}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_self_contained_and_accessible(site, name):
    text, found = read(site, name), Outline(read(site, name))
    assert not {"script", "img", "iframe"} & set(found.found)
    assert not re.search(r"https?:", text.replace("http://www.w3.org/1999/xlink", ""))
    assert len(found.ids) == len(set(found.ids))
    assert len(found.found["h1"]) == 1
    assert all(len(drawn["aria-label"]) > 30 for drawn in found.found.get("svg", []))


def test_the_paper_stands_beside_what_was_measured(site):
    row = cells(read(site, "icd_table5"), "ICD")
    assert row == ["ICD", "94.80", "94.82", "-0.02", "0.25", "0.6", "0.5", "12", "0.000625"]
    assert "One fit each" in read(site, "icd_table5")  # so there is no column of them
    assert ">fits</th>" not in read(site, "icd_table5")
    assert ">fits</th>" in read(site, "dcsvm_figure1")  # of three seeds
    text = read(site, "icd_table5")
    assert '<td class="wrap"><a href="methods.html#icd">ICD</a></td>' in text  # long ones wrap
    assert '<td class="near">-0.02</td>' in text
    assert '<td class="near">+0.12</td>' in text
    assert re.search(r'<td class="warn">-\d+\.\d\d</td>', text)  # LIBSVM's, far away
    assert "4,000 rows to learn from, 1,000 to score" in text
    assert plan.read("icd_table5").note in text


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_its_file_cuts(site, name):
    experiment, text = plan.read(name), read(site, name)
    for number, purpose in ((experiment.rows, "learn from"), (experiment.test_rows, "score")):
        assert (f"rows to {purpose}" in cuts(experiment)) == (number is not None)
        assert number is None or f"{number:,} rows to {purpose}" in cuts(experiment)
    assert f"A fit is ended after {experiment.limit:g} s." in text
    assert cuts(experiment) in text


def test_several_fits_and_threads_are_told():
    experiment = replace(plan.read("icd_table5"), seeds=[0, 3], repeats=2, threads=4)
    assert "Medians of 4 fits each, of seeds 0, 3." in cuts(experiment)
    assert cuts(experiment).endswith("4 threads.")


def test_curves_where_a_number_varies_and_dots_elsewhere(site):
    assert "Accuracy on covtype_classes against degree: from" in read(site, "lut_table3")
    dots = read(site, "icd_table5")
    assert "Accuracy on ijcnn1, ours beside the paper&#x27;s: from 71.80 % (LIBLINEAR)" in dots
    assert "Seconds of a fit against wrong rows on ijcnn1" in dots
    assert "Accuracy on covtype against branching, parts: from" in read(site, "dcsvm_figure1")


@pytest.mark.parametrize(("name", "pictures"), [("dcsvm_figure3", 1), ("dcsvm_figure4", 2)])
def test_no_curves_of_tolerances_and_levels_on_one_axis(tmp_path, name, pictures):
    runner = Runner(plan.read(name), Results(tmp_path / "x.parquet"), lambda text: None,
                    fit=pretended)  # fmt: skip
    schedule = Schedule([runner])
    schedule.run()
    text = experiment_page(runner.experiment, lines_of(schedule.rows(runner)))
    assert text.count("<svg") == pictures
    assert "against early" not in text
    assert "Seconds of a fit against wrong rows" in text


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [((1.07, 17.6), ["1", "2", "5", "10", "20"]), ((0.01, 300.0), ["0.01", "0.1", "1", "10"])],
)
def test_seconds_are_plain_and_few_numbers(seconds, ticks):
    found = [replace(line, rows=[line.rows[0] | {"fit_seconds": s}])
             for line, s in zip(lines({"a": [0.9], "b": [0.8]}), seconds, strict=True)]  # fmt: skip
    text = charts(plan.read("icd_table5"), "set 0", found)[-1]
    told = re.findall(r"<text[^>]*>([\d.]+)</text>", text)
    assert [number for number in told if number in ticks] == ticks
    assert "tspan" not in text  # which powers of ten are written in


def test_gaps_are_drawn_against_iterations_where_the_tolerance_varies():
    convergence = plan.read("icd_convergence")
    found = [Line("usps", "ICD", "ICD", {"tol": tol},
                  [{"status": "done", "accuracy": 0.9, "fit_seconds": 1.0, "published": {},
                    "details": {"iterations": n, "gap": tol / 2}}])
             for n, tol in ((3, 0.1), (9, 0.01), (15, 0.001))]  # fmt: skip
    drawn = charts(convergence, "usps", found)
    assert "against iterations: down to 0.0005, 15 at most" in drawn[-1]
    unmeasured = [replace(line, rows=[line.rows[0] | {"details": {}}]) for line in found]
    assert len(charts(convergence, "usps", unmeasured)) == len(drawn) - 1


def test_objectives_are_drawn_against_the_best_of_the_same_problem():
    def line(method, use, seconds, objective):
        (made,) = lines({method: [0.9]})
        more = {"fit_seconds": seconds, "details": {"dual_objective": objective}}
        return replace(made, use=use, rows=[made.rows[0] | more])

    figure, early = plan.read("dcsvm_figure3_covtype"), "DC-SVM (early)"
    found = [
        line("DC-SVM", "DC-SVM", 1.0, 200.0),
        line(early, early, 0.5, 190.0),
        line("LIBSVM", "LIBSVM RBF", 2.0, 100.0),
        line("LIBSVM", "LIBSVM RBF", 1.0, 99.0),
    ]
    drawn = charts(figure, "covtype", found)
    assert "below the best on covtype: down to 0.01 of it" in drawn[-1]
    without = [line("DC-SVM", "DC-SVM", 1.0, None), line("LIBSVM", "LIBSVM RBF", 2.0, None)]
    assert len(charts(figure, "covtype", without)) == len(drawn) - 1


def test_a_caption_speaks_of_the_paper_only_where_it_prints_something(site):
    assert "marked where the paper is" in read(site, "icd_table5")
    (line,) = lines({"a": [0.9]})
    row = line.rows[0] | {"packages": "{}", "when": "", "machine": "", "cores": 1, "threads": 1,
                          "python": "", "seed": 0, "limit": 1.0, "commit": ""}  # fmt: skip
    text = experiment_page(plan.read("today"), [replace(line, rows=[row])])
    assert "marked where the paper is" not in text
    assert "<p>easy is no default" in text  # a note may have paragraphs
    assert "busy" not in text.split("<table")[-1]
    crowded = replace(line, rows=[row | {"details": {"load": 2.5}}])
    text = experiment_page(plan.read("today"), [crowded])
    assert "seconds of 1 of 1 lines are those of a busy machine (load 2.5 at most)" in text
    roomy = replace(line, rows=[row | {"cores": 4, "details": {"load": 2.5}}])
    assert "(load 2.5 at most)" not in experiment_page(plan.read("today"), [roomy])


def test_seconds_of_several_machines_are_told_apart():
    both = lines({"a": [0.9], "b": [0.8]})
    row = {"packages": "{}", "when": "", "machine": "", "threads": 1, "python": "", "seed": 0,
           "limit": 1.0, "commit": "", "fit_seconds": 1.0}  # fmt: skip

    def shown(*cores):
        rows = [ln.rows[0] | row | {"cores": n, "details": DETAILS}
                for ln, n in zip(both, cores, strict=True)]  # fmt: skip
        found = [replace(ln, rows=[r]) for ln, r in zip(both, rows, strict=True)]
        return experiment_page(plan.read("today"), found)

    text = shown(2, 16)
    assert cells(text, "a")[-1] == "2 cores, busy"
    assert cells(text, "b")[-1] == "16 cores"
    assert ">timed on</th>" not in shown(2, 2)
    for title, value in {"iterations": "7", "dual objective": "12,345.7"}.items():
        assert f">{title}</th>" in text
        assert value in cells(text, "a")


def lines(accuracies: dict[str, list[float | None]]) -> list[Line]:
    """A line for each method and set."""
    return [
        Line(f"set {k}", method, method, {},
             [{"status": "failed" if value is None else "done", "accuracy": value,
               "published": {}, "details": {}}])
        for method, values in accuracies.items() for k, value in enumerate(values)
    ]  # fmt: skip


def test_ranks_over_sets():
    found = standings(lines({
        "a": [0.90, 0.80, 0.700], "b": [0.90, 0.79, None], "boosted trees": [0.95, 0.70, 0.704],
    }))  # fmt: skip
    boosted, a, b = found
    assert [s.method for s in found] == ["boosted trees", "a", "b"]
    assert a.rank == pytest.approx((2.5 + 1 + 2) / 3)
    assert b.rank == pytest.approx((2.5 + 2 + 3) / 3)
    assert (a.first, b.first, boosted.first) == (1, 0, 2)
    assert (a.near, b.near, boosted.near) == (3, 1, 2)  # boosted trees are no kernel method
    assert a.behind == pytest.approx((5 + 0 + 0.4) / 3)
    assert (b.sets, b.behind) == (2, pytest.approx((5 + 1) / 2))
    assert standings(lines({"a": [0.9], "b": [0.8], "c": [0.7]})) == []  # of one set: nothing
    partly = lines({"a": [0.90, 0.80, 0.700], "b": [0.90, 0.79, None], "c": [0.99, 0.99],
                    "boosted trees": [0.95, 0.70, 0.704]})  # fmt: skip
    assert standings(partly) == found  # c was not run on every set


def test_lines_come_in_the_order_of_the_file_whatever_ended_first():
    table5 = plan.read("icd_table5")
    wanted = [(data, m.name) for data in table5.data for m in table5.methods]
    found = [Line(data, method, method, {}, []) for data, method in reversed(wanted)]
    gone = [Line("ijcnn1", "no such method", "ICD", {}, []),
            Line("no such set", "ICD", "ICD", {}, [])]  # fmt: skip
    told = [(line.data, line.method) for line in in_order(table5, [*gone, *found])]
    assert told == wanted
    levels = plan.read("icd_levels")
    found = [Line("usps", "ICD", "ICD", {"n_bins": n}, []) for n in (400, 7, 10, 100)]
    told = [line.parameters["n_bins"] for line in in_order(levels, found)]
    assert told == [10, 100, 400]  # 7 is none of its settings


def test_what_was_not_run_is_told(site):
    table7 = plan.read("dcsvm_table7")
    lasvm = table7.methods[-1]
    settings = [s for m in table7.methods for s in m.settings() if m != lasvm or s["C"] == 2.0]
    names = [m.name for m in table7.methods for s in m.settings() if m != lasvm or s["C"] == 2.0]
    found = [Line("ijcnn1_dense", name, name, s, [])
             for name, s in zip(names, settings, strict=True)]  # fmt: skip
    assert not_run(table7, found) == ["LaSVM (20 of 25 settings) on ijcnn1_dense"]
    table5 = plan.read("icd_table5")
    only = [Line("ijcnn1", m.name, m.use, dict(m.parameters), []) for m in table5.methods[1:]]
    assert not_run(table5, only) == ["ICD on ijcnn1", "shuttle_signed"]
    assert "Not run" not in read(site, "icd_table5")


def test_figures_are_medians_of_the_fits_that_ended():
    (line,) = lines({"a": [0.5]})
    row = line.rows[0] | {"fit_seconds": 0.25}
    more = [row | {"fit_seconds": 1.25}, row | {"fit_seconds": 9.0}, row | {"status": "killed"}]
    assert replace(line, rows=[row, *more]).median("fit_seconds") == 1.25


def test_a_grid_has_its_total_and_far_figures_their_reason(tmp_path):
    table7 = plan.read("dcsvm_table7")
    wanted = replace(table7, reasons=[{"method": "LIBSVM", "why": "fewer <rows>"}])
    runner = Runner(wanted, Results(tmp_path / "x.parquet"), lambda text: None, fit=pretended)
    schedule = Schedule([runner])
    schedule.run()
    text = experiment_page(wanted, lines_of(schedule.rows(runner)))
    assert cells(text, "LIBSVM")[1] != ""
    total = [row for row in re.findall(r"<tr>(.*?)</tr>", text) if "25 of 25" in row]
    assert [re.sub(r"<[^>]+>", " ", row).split()[-1] for row in total][1:3] == [
        "8,172",
        "23,098",
    ]  # 2.3 and 6.4 hours
    assert "<li>LIBSVM: fewer &lt;rows&gt;</li>" in text
    assert text.count("fewer") == 1


def test_failures_are_told_and_are_text(site):
    text = read(site, "dcsvm_table1")
    assert "BCM clusters=50: failed, &lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert EVIL not in text
    assert cells(text, "BCM clusters=50")[1] == "failed"
    assert cells(text, "BCM clusters=50")[-1] == "C=32.0 clusters=50 gamma=32.0"
    assert "levels of the first fit" in text
    assert ">n_clusters</th>" in text
    assert ">bound</th>" not in text  # not measured: nothing but NaN


def test_the_overview_counts_and_names_losses(site):
    text = read(site, "index")
    assert f"<b>{len(NAMES)} of {len(plan.names())}</b>" in text
    printed = cells(text, plan.read("icd_table5").title)
    assert printed[1:4] == ["10", "10", "2"]
    assert '<td class="wrap"><a href="icd_table5.html">' in text  # figures stay on a phone's screen
    winner = cells(text, "icd_table5, ijcnn1")
    assert winner == ["icd_table5, ijcnn1", "ICD", "94.80", "0.25", "LIBSVM+HIK", "72.00", "0.25",
                      "+22.80"]  # fmt: skip
    loss = cells(text, "dcsvm_figure1, covtype")
    assert loss[-1].startswith("-")
    assert f'<td class="warn">{loss[-1]}</td>' in text
    assert "today: Our defaults, untuned" in text  # has no results here


@pytest.mark.parametrize("name", ["icd_table5", "index"])
def test_where_and_with_what_it_was_made(site, name):
    text = read(site, name)
    for fact in ("machine", "python", "packages", "seed", "commit", "threads"):
        assert f'scope="row">{fact}</th>' in text
    assert "scikit-learn: " in text


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(site, name):
    assert len(" ".join(words(name))) > 40
    assert not any(">>>" in text or "----" in text for text in words(name))


def test_competitors_name_their_own_source(site):
    text = read(site, "methods")
    assert "Shalev-Shwartz, Singer and Srebro (ICML 2007)" in text
    assert "benchmarks.competitors.pegasos" in text
    assert "widemargin.papers" in text
    assert COMPETITORS["Pegasos"](C=0.5).estimator.C == 0.5


def test_all_stands_for_every_experiment(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr("benchmarks.experiments.__main__.run", lambda e, *rest: ran.extend(e))
    assert main(["all"]) == 0
    assert [experiment.name for experiment in ran] == plan.names()


def test_without_results_there_is_an_overview_that_says_so(tmp_path, capsys):
    assert main(["--out", str(tmp_path / "none"), "--site", str(tmp_path / "site")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "site" / "index.html")
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert f"<b>0 of {len(plan.names())}</b>" in text
    Outline(text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "methods", "icd_table5", "dcsvm_table1"])
def test_in_a_browser_on_a_phone(site, name, scheme, tmp_path):
    seen = assert_readable(site / f"{name}.html", width=360, scheme=scheme, folder=tmp_path)
    assert seen.text.strip()


def test_labels_are_short_and_precision_has_its_column(tmp_path):
    figure2 = plan.read("dcsvm_figure2")
    found = [Line("covtype", m.name, m.use, settings, [
        {"status": "done", "accuracy": 0.8, "published": {}, "packages": "{}", "when": "",
         "machine": "", "cores": 1, "threads": 1, "python": "", "seed": 0, "limit": 1.0,
         "commit": "", "details": {"precision": 0.875, "recall": 0.25}}])
        for m in figure2.methods for settings in m.settings()]  # fmt: skip
    text = experiment_page(figure2, found)
    row = cells(text, "LIBSVM, RBF tol=0.01")
    assert row[row.index("0.875") + 1] == "0.25"
    assert ">precision</th>" in text
    tenth = [Line("a", "m", "m", {"C": 2.0**-k}, []) for k in (10, 6)]
    assert labels(tenth) == ["m C=0.000977", "m C=0.0156"]
