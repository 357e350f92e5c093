"""An audit's file in place of a collection: explain, mitigate and audit read what it was
made of.
"""

import json
from pathlib import Path

import pytest

from ranktilt.cli.audit.from_audit import audit_to_correct, with_inputs_of_audit
from ranktilt.cli.main import run
from ranktilt.data.bundled.reader import bundled
from ranktilt.data.save import save
from tests.auditing.arrays import studied


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled collection with an audit of two runs, and one of labels and a saved run."""
    folder = tmp_path_factory.mktemp("audited")
    save(bundled(), folder / "bundled")
    words = ["audit", str(folder / "bundled"), "-m", "nDCG@10", "--quiet"]
    words_of_two = [*words, "-r", "bm25", "-r", "ours=tfidf", "--json", str(folder / "two.json")]
    assert run(words_of_two) == 0
    lines = list[str]()
    for query in range(12):
        lines += [f"q{query} Q0 d{rank} {rank} {-rank} tag" for rank in range(9)]
    (folder / "run.trec").write_text("\n".join(lines) + "\n")
    rows = [f"d{rank},{'ai' if rank % 2 else 'human'},{rank}" for rank in range(9)]
    (folder / "labels.csv").write_text("\n".join(["doc_id,source,words", *rows]) + "\n")
    labelled = ["audit", "--run", str(folder / "run.trec"), "--groups", str(folder / "labels.csv")]
    assert run([*labelled, "--quiet", "--json", str(folder / "labels.json")]) == 0
    (folder / "qrels.txt").write_text("".join(f"q{n} 0 d{n % 9} 1\n" for n in range(12)))
    judged = [*labelled, "--qrels", str(folder / "qrels.txt")]
    assert run([*judged, "--quiet", "--json", str(folder / "judged.json")]) == 0
    return folder


def test_audit_is_made_again_from_its_file(folder: Path) -> None:
    file, again = folder / "two.json", folder / "again.json"
    assert run(["audit", str(file), "--quiet", "--json", str(again)]) == 0
    first, second = (json.loads(path.read_text()) for path in (file, again))
    assert first["runs"] == second["runs"] == ["bm25", "ours"]
    assert first["tilts"] == second["tilts"]


def test_card_and_draws_are_asked_again(folder: Path) -> None:
    words = ["audit", str(folder / "bundled"), "-r", "bm25", "-m", "AP@5", "--card", "--quiet"]
    seeded = [*words, "--set", "statistics.seed=3", "--set", "statistics.resamples=500"]
    first, again = folder / "card.json", folder / "card-again.json"
    assert run([*seeded, "--json", str(first)]) == 0
    assert run(["audit", str(first), "--quiet", "--json", str(again)]) == 0
    content, remade = (json.loads(path.read_text()) for path in (first, again))
    assert [content[key] for key in ("tilts", "card")] == [remade[key] for key in ("tilts", "card")]
    expanded = with_inputs_of_audit(["audit", str(first), "--set", "statistics.seed=4"])
    assert "statistics.resamples=500" in expanded
    assert "statistics.seed=3" not in expanded


def test_usual_question_of_labels_is_not_typed(folder: Path) -> None:
    words = with_inputs_of_audit(["audit", str(folder / "labels.json")])
    run_file, label_file = str(folder / "run.trec"), str(folder / "labels.csv")
    assert words == ["audit", "--run", run_file, "--groups", label_file]


def test_explain_names_folder_and_rankers(folder: Path) -> None:
    words = with_inputs_of_audit(["explain", str(folder / "two.json"), "-r", "bm25"])
    assert words == ["explain", str(folder / "bundled"), "-r", "bm25", "--attribution"]


def test_mitigate_takes_the_run_that_is_named(folder: Path) -> None:
    file = str(folder / "two.json")
    words = with_inputs_of_audit(["mitigate", file, "-r", "ours", "--budget", "10"])
    assert words[:4] == ["mitigate", str(folder / "bundled"), "-r", "ours=tfidf"]
    assert words[-2:] == ["--budget", "10"]


def test_mitigate_asks_which_of_several_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mitigate", str(folder / "two.json")]) == 2
    assert "holds 2 runs, but mitigate takes one: -r bm25 or -r ours" in capsys.readouterr().err


def test_typed_options_win(folder: Path) -> None:
    file = str(folder / "two.json")
    words = with_inputs_of_audit(["audit", file, "-r", "bm25(b=0)", "--ties=expected"])
    assert [word for word in words if word.startswith(("bm25", "ours"))] == ["bm25(b=0)"]
    assert words[-1] == "--ties=expected"
    assert "-m" in words


def test_labels_and_saved_runs_are_explained(folder: Path) -> None:
    words = with_inputs_of_audit(["explain", str(folder / "labels.json")])
    assert words[:3] == ["explain", "--run", str(folder / "run.trec")]
    assert words[words.index("--groups") + 1].startswith(str(folder / "labels.csv"))
    assert run([*words, "--quiet"]) == 0


def test_judgments_are_no_option_of_explain(folder: Path) -> None:
    words = with_inputs_of_audit(["explain", str(folder / "judged.json")])
    assert "--qrels" not in words
    assert run([*words, "--quiet"]) == 0
    words = with_inputs_of_audit(["mitigate", str(folder / "judged.json")])
    assert "--qrels" in words


def test_moved_files_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "run.trec"
    path.rename(folder / "elsewhere.trec")
    try:
        assert run(["explain", str(folder / "labels.json")]) == 2
    finally:
        (folder / "elsewhere.trec").rename(path)
    message = capsys.readouterr().err
    assert f"was made from {path}, which is no longer there" in message


def test_changed_files_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "labels.csv"
    text = path.read_text()
    path.write_text(text + "d9,human,9\n")
    try:
        with_inputs_of_audit(["explain", str(folder / "labels.json")])
        note = capsys.readouterr().err
        with_inputs_of_audit(["--quiet", "explain", str(folder / "labels.json")])
    finally:
        path.write_text(text)
    assert f"{path} has changed since" in note
    assert not capsys.readouterr().err


def test_audits_of_several_sources_are_explained_and_not_mitigated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(studied(), tmp_path / "three")
    words = ["audit", str(tmp_path / "three"), "-r", "bm25", "-m", "nDCG@10", "--quiet"]
    assert run([*words, "--json", str(tmp_path / "sources.json")]) == 0
    file = str(tmp_path / "sources.json")
    assert run(["mitigate", file]) == 2
    assert "audits 3 sources, each with human" in capsys.readouterr().err
    words = with_inputs_of_audit(["explain", file])
    assert words[:2] == ["explain", str(tmp_path / "three")]


def test_json_of_another_kind_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    assert run(["explain", str(tmp_path / "other.json")]) == 2
    assert "expected an audit" in capsys.readouterr().err


def test_named_labels_and_ordered_runs_are_explained(folder: Path) -> None:
    labels, run_file = folder / "flags.csv", folder / "run.trec"
    rows = [f"d{rank},{rank % 2},{rank}" for rank in range(9)]
    labels.write_text("\n".join(["url,is_ai,words", *rows]) + "\n")
    words = ["audit", "--run", str(run_file), "--score-order", "rank", "--quiet"]
    words += ["--groups", f"{labels}:id=url,source=is_ai", "--name", "1=ai,0=human"]
    file = folder / "flags.json"
    assert run([*words, "--json", str(file)]) == 0
    expanded = with_inputs_of_audit(["explain", str(file)])
    assert expanded[expanded.index("--score-order") + 1] == "rank"
    assert "--name" in expanded
    explained = folder / "explained.json"
    assert run([*expanded, "--quiet", "--json", str(explained)]) == 0
    gap = json.loads(explained.read_text())["gaps"][0]
    assert (gap["group_a"], gap["group_b"]) == ("human", "ai")


def test_explain_refuses_an_order_of_no_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", str(folder / "bundled"), "--score-order", "rank"]) == 2
    assert "--score-order needs a run: --run FILE" in capsys.readouterr().err


def test_audit_that_mitigate_can_read_is_remembered(folder: Path) -> None:
    judged, ranks = str(folder / "judged.json"), str(folder / "ranks.json")
    words = ["audit", str(folder / "bundled"), "-r", "bm25", "--primary", "RankGap", "--quiet"]
    assert run([*words, "-m", "nDCG@10", "--json", ranks]) == 0
    for words, file in (
        (["explain", judged], judged),
        (["explain", judged, "-r", "run", "--probe", "words"], judged),
        (["explain", judged, "--by", "source"], ""),  # what is explained is not in the file
        (["explain", judged, "--run", str(folder / "run.trec")], ""),
        (["explain", ranks], ""),  # mitigate corrects no tilt in ranks
        (["mitigate", judged], ""),
    ):
        with_inputs_of_audit(words)
        assert audit_to_correct() == file, words


def test_label_errors_that_a_verb_ignores_are_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(folder / "errors.json")
    words = ["audit", "--run", str(folder / "run.trec"), "--groups", str(folder / "labels.csv")]
    rates = "ai:fpr=.1,fnr=.1"
    assert run([*words, "--label-errors", rates, "-m", "Share@4", "--quiet", "--json", file]) == 0
    for verb in ("explain", "mitigate"):
        with_inputs_of_audit([verb, file])
        note = f"corrected for label errors ({rates}); {verb} takes the labels as they are"
        assert note in capsys.readouterr().err
    with_inputs_of_audit(["audit", file])
    with_inputs_of_audit(["explain", file, "--quiet"])
    assert "label errors" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["audit", "explain", "mitigate"])
def test_missing_audit_is_no_missing_folder(
    verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([verb, str(folder / "gone.json")]) == 2
    assert "gone.json: no such file or folder" in capsys.readouterr().err
