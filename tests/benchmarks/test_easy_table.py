"""The table of `easy` is resumed, and says itself what is not in it."""

import pytest
from benchmarks import easy, report


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Where it is written; rows that are compared are of one kind, and noted."""
    compared = []

    def compare(name, n_rows, seed):
        compared.append((name, n_rows, seed))
        many = (
            f"{name}, 341 x 30, mean of 5 splits" if name in easy.FEW else f"{name}, {n_rows:,} x 9"
        )
        return [many, "90.00 (31 s)", *["89.00 (1 s)"] * 4, "-0.75"]

    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(easy, "compare", compare)
    monkeypatch.setattr(easy, "one_thread", lambda: None)
    return tmp_path / "easy.md", compared


def test_a_run_measures_what_the_table_has_not(table):
    path, compared = table
    easy.main(["digits", "shuttle"])
    assert compared == [("digits", 2000, 0), ("shuttle", 2000, 0), ("shuttle", 1000, 1),
                        ("shuttle", 4000, 2)]  # fmt: skip
    assert "18 of 22 rows are not measured yet." in path.read_text()
    path.write_text(path.read_text().replace("| shuttle, 1,000 x", "| gone, 1,000 x"))
    compared.clear()
    easy.main(["shuttle"])
    assert compared == [("shuttle", 1000, 1)]
    easy.main([])
    text = path.read_text()
    assert len(compared) == 22 - 3
    assert "not measured" not in text
    assert "it is below in 22 of 22 rows, the worst is -0.75" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row.split(",")[0] for row in rows[:3]] == ["| breast cancer", "| digits", "| satimage"]
