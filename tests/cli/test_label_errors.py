"""--label-errors on the command line: audit, gate, compare, and an audit that is made again."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli

QUICK = ("--set", "statistics.resamples=300")
QUERIES, DOCUMENTS, DEPTH = 30, 90, 20


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, labels of a detector with lengths, and a checked sample."""
    folder = tmp_path_factory.mktemp("labelled")
    rng = np.random.default_rng(2)
    is_ai = rng.random(DOCUMENTS) < 0.5
    names = [f"d{number}" for number in range(DOCUMENTS)]
    rows = [
        f"{name},{'ai' if ai else 'human'},{number % 7},{rng.random():.3f}"
        for number, (name, ai) in enumerate(zip(names, is_ai, strict=True))
    ]
    (folder / "labels.csv").write_text("\n".join(["doc_id,source,age,chance", *rows]) + "\n")
    lines = []
    for query in range(QUERIES):
        drawn = rng.choice(DOCUMENTS, DEPTH, replace=False)
        scores = rng.standard_normal(DEPTH) + is_ai[drawn]
        for rank, position in enumerate(np.argsort(-scores), start=1):
            document, score = drawn[position], scores[position]
            lines.append(f"q{query} Q0 d{document} {rank} {score:.6f} run")
    (folder / "run.trec").write_text("\n".join(lines) + "\n")
    checked = ["ai,ai"] * 45 + ["ai,human"] * 5 + ["human,human"] * 48 + ["human,ai"] * 2
    (folder / "checked.csv").write_text("\n".join(["true,label", *checked]) + "\n")
    return folder


def words(folder: Path, *more: str) -> list[str]:
    inputs = ["audit", "--run", str(folder / "run.trec"), "--groups", str(folder / "labels.csv")]
    return [*inputs, "--reference", "human", *QUICK, *more]


def test_audit_is_corrected_printed_and_made_again(
    cli: Cli, labelled: Path, tmp_path: Path
) -> None:
    for number, rates in enumerate(
        (str(labelled / "checked.csv"), "ai:by=age:2,fpr=.02|.04,fnr=.1|.2")
    ):
        first, second = tmp_path / f"first{number}.json", tmp_path / f"second{number}.json"
        printed = cli(*words(labelled, "--label-errors", rates, "--json", str(first)))
        assert printed.code == 0, printed.err
        assert "answers are corrected for label errors" in printed.out + printed.err
        assert "by the labels as they are" in printed.out
        assert "as labelled" in printed.out
        assert cli("audit", first, "--quiet", "--json", second).code == 0
        audits = [json.loads(path.read_text()) for path in (first, second)]
        assert audits[0]["card"] == audits[1]["card"]
        assert audits[0]["spec"]["label_errors"] == rates
    paths = [record["path"] for record in audits[0]["spec"]["inputs"]]
    assert str(labelled / "checked.csv") not in paths


def test_gate_and_compare_correct_saved_audits(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    plain, corrected = tmp_path / "plain.json", tmp_path / "corrected.json"
    rates = ("--label-errors", str(labelled / "checked.csv"))
    cli(*words(labelled, "--quiet", "--json", str(plain)))
    cli(*words(labelled, *rates, "--quiet", "--json", str(corrected)))
    later = cli("gate", plain, *rates, "--max-tilt", "5")
    at_once = cli("gate", corrected, "--max-tilt", "5")
    assert (later.code, at_once.code) == (1, 1)
    for line in at_once.out.splitlines():
        if line.startswith("✗ run"):
            assert line in later.out
    assert "points by the labels as they are" in at_once.out + at_once.err
    assert cli("compare", plain, plain, *rates, *QUICK).code == 0
    mixed = cli("compare", plain, corrected, *QUICK)
    assert mixed.code == 2
    assert "the audits differ in label errors" in mixed.err


REFUSALS = {
    ("--label-errors", "ai:fpr=.7,fnr=.4"): "from 1 on labels say nothing about the groups",
    ("--label-errors", "gone.csv"): "expected rates, such as ai:fpr=.02,fnr=.05",
    ("--label-errors", "ai:by=size,fpr=.1|.2,fnr=.1|.2"): "unknown column to group by 'size'",
    ("--label-errors", "ai:fpr=.1,fnr=.1", "-m", "AWRF"): "AWRF cannot be corrected",
    ("--label-errors", "ai:fpr=.1,fnr=.1", "--by", "chance"): "chance is a column of numbers",
    ("--label-errors", "ai:fpr=.1,fnr=.1", "--by", "none"): "needs a column to group by",
}


@pytest.mark.parametrize("typed", REFUSALS)
def test_label_error_refusals(cli: Cli, labelled: Path, typed: tuple[str, ...]) -> None:
    options = words(labelled, *typed)
    if "--by" in typed:
        position = options.index("--reference")
        del options[position : position + 2]
    result = cli(*options)
    assert result.code == 2
    assert REFUSALS[typed] in result.err
    assert "Traceback" not in result.err
    assert result.err.strip().count("\n") == 0
