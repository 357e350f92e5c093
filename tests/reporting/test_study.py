"""A study as text: every source in its row, trends in words, the same numbers in every format."""

import csv
import io
import re
from typing import Any

import pytest

from ranktilt.auditing.study import Study, study
from ranktilt.errors import UserError
from ranktilt.reporting.study import FORMATS, legend, rows, show_study, study_table
from tests.auditing.studied import decided, studied

QUICK: dict[str, Any] = {"resamples": 300}
SECOND = {"llm-tmp0.2": 20, "llm-tmp0.7": 20, "llm-tmp1.0": 20}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def found(measures: Any = ("nDCG@1",), **options: Any) -> Study:
    return study(studied(), [decided()], list(measures), **{**QUICK, **options})


def two_models() -> Study:
    wins = {"x-tmp0.2": 10, "x-tmp0.7": 20, "x-tmp1.0": 30, "y-tmp0.5": 40, "plain|one": 0}
    return study(studied({name: {} for name in wins}), [decided(wins)], "nDCG@1", **QUICK)


CASES = [found, two_models]


def screen(study: Study, monkeypatch: pytest.MonkeyPatch, columns: int) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LINES", "50")
    stream = Terminal()
    show_study(study, stream)
    return re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())


def test_the_table_as_it_is_printed() -> None:
    made = found(seed=1)
    low, high = (made.tilts[0].low, made.tilts[0].high)
    text = study_table(made, notes=False)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert lines[0] == ["nDCG@1", "queries", "verdict"]
    assert lines[2][0].startswith("decided")
    at = next(place for place, line in enumerate(lines) if line[:2] == ["0.2", "−100.0*"])
    assert lines[at] == ["0.2", "−100.0*", "40", "favours", "rewrites"]
    assert lines[at + 1] == ["llm-tmp0.2", f"[{low:.1f},".replace("-", "−"), f"{high:.1f}]".replace("-", "−")]
    assert lines[at + 2] == ["0.7", "0.0", "40", "inconclusive"]
    assert lines[at + 4] == ["1", "+100.0*", "40", "favours", "human"]
    assert lines[at + 6] == ["0.2", "to", "1,", "points", "+200.0", "40", "toward", "human"]
    assert lines[at + 8][:3] == ["rank", "correlation", "+1.00"]
    assert lines[-1] == made.sentences[0].split()


def test_rows_come_by_temperature_and_end_in_the_trend() -> None:
    laid = rows(found())
    assert [(row.kind, row.label, row.under) for row in laid] == [
        ("source", "0.2", "llm-tmp0.2"),
        ("source", "0.7", "llm-tmp0.7"),
        ("source", "1", "llm-tmp1.0"),
        ("change", "0.2 to 1, points", ""),
        ("correlation", "rank correlation", ""),
    ]
    assert [row.cells[0][0] for row in laid] == ["−100.0*", "0.0", "+100.0*", "+200.0", "+1.00"]
    assert [row.shown for row in laid] == [(True,), (False,), (True,), (True,), (True,)]


def test_series_stand_apart_and_a_source_without_a_temperature_has_a_dash() -> None:
    laid = rows(two_models())
    assert [(row.series, row.label) for row in laid if row.kind == "source"] == [
        ("plain|one", "–"), ("x", "0.2"), ("x", "0.7"), ("x", "1"), ("y", "0.5"),
    ]  # fmt: skip
    assert {row.series for row in laid if row.kind != "source"} == {"x"}
    heads = [line.strip() for line in study_table(two_models()).splitlines()]
    assert [head for head in heads if head in ("x", "y", "plain|one")] == ["plain|one", "x", "y"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_every_source_and_value_is_in_every_format(case: Any, format: str) -> None:
    made = case()
    text = study_table(made, format)
    assert text.endswith("\n")
    for arm in made.arms:
        assert arm.source.replace("|", "\\|" if format == "markdown" else "|") in text
    if format != "csv":
        for tilt in made.tilts:
            assert f"{abs(tilt.value):.1f}" in text
        plain = text.replace("\\", "")
        assert all(sentence in plain for sentence in (*made.sentences, *legend(made), *made.notes))


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_terminal_shows_the_same_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = found(["nDCG@1", "nDCG@3", "AP@1", "AP@3"])
    text = screen(made, monkeypatch, columns)
    assert max(map(len, text.splitlines())) <= columns
    words = [{word for word in one.split() if "──" not in word} for one in (text, study_table(made))]
    assert words[0] == words[1]


def test_measures_that_do_not_fit_follow_below_and_the_verdict_stands_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = screen(found(["nDCG@1", "nDCG@3", "AP@1", "AP@3"]), monkeypatch, 80)
    titles = [line.split() for line in text.splitlines() if line.strip().endswith(("  queries", "  verdict"))]
    assert [name for line in titles for name in line if "@" in name] == ["nDCG@1", "nDCG@3", "AP@1", "AP@3"]
    assert text.count("verdict") == 1


def test_a_narrow_column_folds_a_long_name(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a-model-with-a-very-long-name-tmp0.2"
    made = study(studied({name: {}}), [decided({name: 1})], "nDCG@1", **QUICK)
    assert max(map(len, screen(made, monkeypatch, 80).splitlines())) <= 80
    assert name in study_table(made, "markdown")


def test_markdown_is_a_table_and_a_list() -> None:
    lines = study_table(two_models(), "markdown").splitlines()
    table, said = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert table[0] == "| ranker | model | temperature | source | nDCG@1 | queries | verdict |"
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {8}
    assert len(table) == 2 + 5 + 2
    assert all(line.startswith("- ") for line in said)


def test_without_notes_the_trends_stay() -> None:
    made = found()
    for format in ("table", "markdown"):
        loud, quiet = (study_table(made, format, notes=notes) for notes in (True, False))
        assert loud.startswith(quiet)
        assert "moves toward human" in quiet
        assert "Holm" not in quiet


def test_csv_is_unrounded_and_leaves_the_unknown_empty() -> None:
    made = two_models()
    table = list(csv.DictReader(io.StringIO(study_table(made, "csv"))))
    assert [(row["source"], row["temperature"]) for row in table] == [
        ("plain|one", ""), ("x-tmp0.2", "0.2"), ("x-tmp0.7", "0.7"), ("x-tmp1.0", "1.0"), ("y-tmp0.5", "0.5"),
    ]  # fmt: skip
    for row, tilt in zip(table, made.tilts, strict=True):
        assert (float(row["value"]), float(row["low"]), float(row["p_corrected"])) == (
            tilt.value, tilt.low, tilt.p_corrected,
        )  # fmt: skip
    assert [row["verdict"] for row in table] == [
        "favours plain|one", "favours x-tmp0.2", "inconclusive", "favours human", "favours human",
    ]  # fmt: skip


def test_the_legend_names_test_correction_and_ties() -> None:
    usual = " ".join(legend(found()))
    assert "corrected p < .05 (Holm over 3 tests; the larger p of a paired sign-flip permutation test" in usual
    assert "+ favours human, − favours the rewrites" in usual
    assert "not corrected for the number of trends" in usual
    other = " ".join(legend(found(["nDCG@1", "AP@1"], test="t", correction="bonferroni", ties="trec_eval")))
    assert "Verdict on nDCG@1; * corrected p < .05 (Bonferroni over 6 tests; the larger p of a paired t test" in other
    assert "Ties: trec_eval's, by id." in other


def test_without_a_trend_none_is_explained() -> None:
    assert "Trend:" not in " ".join(legend(found(sources=["llm-tmp0.2"])))


def test_several_rankers_stand_below_each_other() -> None:
    made = study(studied(), [decided(), decided(SECOND)], "nDCG@1", **QUICK)
    laid = rows(made)
    assert [row.run for row in laid] == [made.runs[0]] * 5 + [made.runs[1]] * 5
    assert [row.verdict for row in laid[5:]] == ["inconclusive"] * 4 + [""]
    assert [row.cells[0][0] for row in laid[8:]] == ["0.0", "–"]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown format 'latex' \(valid: table, markdown, csv\)"):
        study_table(found(), "latex")
