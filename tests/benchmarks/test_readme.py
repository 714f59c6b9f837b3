"""The figures of README and docs/measured.md are those of the committed results."""

import re
from dataclasses import replace

import pytest
from benchmarks import readme
from benchmarks.experiments import plan
from benchmarks.readme import (
    MEASURED,
    PAPER,
    README,
    TABLES,
    Result,
    notes,
    paper_phrases,
    phrases,
    rewritten,
)
from benchmarks.report import RESULTS

if not RESULTS.exists():
    pytest.skip("results are not in the sdist", allow_module_level=True)
TEXT = MEASURED.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", TABLES, ids=lambda path: path.name)
def test_tables_are_what_the_results_say(document):
    assert rewritten(document) == document.read_text(encoding="utf-8"), (
        "python -m benchmarks.readme"
    )


def test_the_first_page_is_short_and_has_one_small_table():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert sum(line.startswith("|") for line in text.splitlines()) <= 2 + 6
    assert not re.search(r"^\|", text.partition("<!-- headline")[0], re.MULTILINE)


@pytest.mark.parametrize("phrase", phrases())
def test_sentences_are_what_the_results_say(phrase):
    assert " ".join(phrase.split()) in " ".join(TEXT.split())


@pytest.mark.parametrize("phrase", paper_phrases())
def test_sentences_of_the_paper_are_what_the_results_say(phrase):
    assert phrase in " ".join(PAPER.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("said", notes())
def test_the_note_of_the_experiment_is_what_its_results_say(said):
    assert said in plan.read("today").note


# ------------------------------------------------------------------ that it can fail


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """Results of which one can be changed."""

    def change(name: str, old: str, new: str) -> None:  # a pattern, and what stands for it
        path = tmp_path / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        assert re.search(old, text)
        path.write_text(re.sub(old, new, text), encoding="utf-8")

    for path in RESULTS.glob("*.md"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "experiments").symlink_to(RESULTS / "experiments")
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    return change


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("fashion_fit", r"(\| fit against LinearSVC \|) [\d.]+", r"\1 2.1", "| 2.1 times faster |"),
        (
            "many_classes_small",
            r"(\| SVC \| [\d.]+ \|) [\d.]+",
            r"\1 1.24",
            "defaults | 1.2 times |",
        ),
        ("kernel_fit_covtype", r"87.94 (\| 13528)", r"88.94 \1", "times | -1.02 points |"),
        ("kernel_grid", "6.1 and 6.5", "3.1 and 6.5", "| 3.1 times (ours on one thread) |"),
    ],
)
def test_another_measurement_is_another_table(changed, name, old, new, said):
    changed(name, old, new)
    assert said in rewritten(MEASURED)
    assert said not in TEXT


def test_another_measurement_is_another_headline(changed):
    changed("fashion_fit", r"(\| fit against LinearSVC \|) [\d.]+", r"\1 2.1")
    assert "| 2.1 times faster |" in rewritten(README)


def test_another_measurement_is_another_sentence(changed):
    before = phrases()
    changed("startup", "0.244", "0.344")
    assert [p for p in phrases() if p not in before] == [
        "[0.34 s](../benchmarks/results/startup.md)"
    ]  # fmt: skip


def test_another_experiment_is_another_table_and_sentence(changed, monkeypatch):
    mirrored = [
        replace(
            line,
            method={"KernelSVC": "LIBSVM RBF", "LIBSVM RBF": "KernelSVC"}.get(
                line.method, line.method
            ),
        )
        for line in readme._today()
    ]
    monkeypatch.setattr(readme, "_today", lambda: mirrored)
    assert rewritten(MEASURED) != TEXT
    assert "is worth -7 to -3 points" in phrases()


def test_easy_is_held_against_the_tuned_methods_of_others(monkeypatch):
    """Better than our defaults is not near the best; and it is nobody's bar."""
    before, near = readme.today_table(), readme._near_the_tuned(*readme.OURS)
    (own,) = (row for row in before if row.startswith("| **widemargin easy**"))
    assert f"| {readme._near_the_tuned(readme.EASY).split()[0]} |" in own

    def accuracies(share):
        return [
            replace(line, rows=[row | {"accuracy": share} for row in line.rows])
            if line.method == readme.EASY
            else line
            for line in lines
        ]

    lines = readme._today()
    for share, count in ((0.1, 0), (1.0, 12)):
        found = accuracies(share)
        monkeypatch.setattr(readme, "_today", lambda found=found: found)
        assert readme._near_the_tuned(readme.EASY) == f"{count} sets of the 12"
        assert readme._near_the_tuned(*readme.OURS) == near
        shown = {row.split("|")[1]: row.split("|")[5] for row in readme.today_table()}
        assert shown == {row.split("|")[1]: row.split("|")[5] for row in before} | {
            " **widemargin easy**, which chooses ": f" {count} "
        }


def test_seconds_of_a_busy_machine_are_left_out(monkeypatch):
    lines = readme._today()
    before = sum(row.endswith("|  |") for row in readme.today_table())
    crowded = [
        replace(line, rows=[row | {"details": {"load": row["cores"] + 1.0}} for row in line.rows])
        if line.method == "AdditiveSVC"
        else line
        for line in lines
    ]
    monkeypatch.setattr(readme, "_today", lambda: crowded)
    own = [row for row in readme.today_table() if "AdditiveSVC" in row]
    assert own[0].endswith("|  |")
    assert sum(row.endswith("|  |") for row in readme.today_table()) == before + 1


def test_a_method_that_was_not_run_on_some_sets_has_no_rank(monkeypatch):
    lines = [ln for ln in readme._today() if (ln.method, ln.data) != ("LightGBM", "usps")]
    before = readme.today_table()
    monkeypatch.setattr(readme, "_today", lambda: lines)
    assert any("LightGBM" in row for row in before)
    assert not any("LightGBM" in row for row in readme.today_table())
    assert len(readme.today_table()) == len(before) - 1


def test_a_row_that_is_gone_is_named():
    with pytest.raises(ValueError, match=r"startup.md has no row no such process"):
        Result("startup").row("no such process")
