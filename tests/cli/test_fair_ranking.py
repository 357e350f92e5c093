"""ranktilt data build fair-ranking: a folder that every verb reads, candidates that every ranker orders."""

import json
import shlex
from pathlib import Path

import numpy as np
import orjson
import pytest

from ranktilt import Audit, PairwiseAudit, Run
from ranktilt.datasets.load import load
from ranktilt.io.files import sha256
from tests.cli.conftest import Cli
from tests.toy import write

HEAD = "q_id,q_text,doc_id,gender,doc_title,first sentence\n"
QUERIES = {"q1": "cold water", "q2": "old clocks", "q3": "red apples"}


def people(tmp_path: Path, *, unlabelled: int = 0) -> Path:
    """Eight men and four women for each query, whose texts name what the query asks for."""
    lines = []
    for query, text in QUERIES.items():
        for n in range(12):
            gender = "" if n < unlabelled else "female" if n % 3 == 0 else "male"
            lines.append(f"{query},{text},{query}-{n},{gender},Person {n},Known for {text} and {n} books.\n")
    return write(tmp_path / "people.csv", HEAD + "".join(lines))


def test_a_folder_is_built_and_told_of(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "people"
    code, out, err = cli(
        "data", "build", "fair-ranking", people(tmp_path), "--protected", "female", "--items", 12, "-o", place
    )
    assert code == 0
    lines = dict(line.split("  ", 1) for line in out.splitlines())
    assert lines["queries"].strip() == "3 of 3"
    assert lines["no label"].strip() == "0 documents, left out"
    assert lines["P@20 by chance"].strip() == "0.300"  # a list of 12 fills 12 of 20 ranks
    candidates = f"replay:{place}/candidates.trec"
    assert err.splitlines()[-1] == (
        f"Next: ranktilt audit {place} --by gender --protected female -m P@20 -m ExposureRatio@12 "
        f"-r {candidates} -r '{candidates}>>bm25'"
    )
    collection = load(place)
    assert set(collection.docs["gender"]) == {"female", "male"}
    assert collection.queries.rows() == list(QUERIES.items())
    about = orjson.loads((place / "built.json").read_bytes())
    assert about["files"] == {"people.csv": sha256(tmp_path / "people.csv")}
    assert (about["seed"], about["blocks"], about["min_judged"]) == (0, "natural", 12)
    runs = [Run.load(place / name) for name in ("candidates.trec", "initial.trec")]
    assert [run.spec["ranker"] for run in runs] == ["shuffled items", "initial ranking"]
    assert all(set(np.diff(run.offsets)) == {12} for run in runs)
    shown = cli("audit", place, "--by", "gender", "--protected", "female", "-m", "P@20", "-r", f"{candidates}>>bm25")
    assert shown.code == 0


REGIONS = ("Europe", "Asia", "Northern America", "Europe|Asia", "Africa", "Côte d'Ivoire")


@pytest.mark.parametrize(
    ("protected", "side", "members"),
    [
        ("Europe|Asia", "Asia|Europe", {0, 1, 3}),
        ("non-Europe|Asia", "non-Asia|Europe", {2, 4, 5}),
        ("Northern America|Côte d'Ivoire", "Côte d'Ivoire|Northern America", {2, 5}),
    ],
)
def test_every_verb_reads_a_union_of_groups(
    cli: Cli, tmp_path: Path, protected: str, side: str, members: set[int]
) -> None:
    """build, audit, rank and pairwise mean the same documents, and the next command can be pasted."""
    rows = [
        f"{query},{text},{query}-{n},{REGIONS[n % 6]},Person {n},Known for {text} and {n} books.\n"
        for query, text in QUERIES.items()
        for n in range(12)
    ]
    file = write(tmp_path / "regions.csv", HEAD.replace("gender", "region") + "".join(rows))
    place, audited, chosen = tmp_path / "lists", tmp_path / "audit.json", tmp_path / "pairs.json"
    code, _, err = cli("data", "build", "fair-ranking", file, "--protected", protected, "--items", 12, "-o", place)
    assert code == 0
    pasted = shlex.split(err.splitlines()[-1].removeprefix("Next: ranktilt "))
    assert cli(*pasted, "--resamples", 100, "--json", audited).code == 0
    assert Audit.load(audited).pairs[0][0] == side
    gated = cli("gate", audited, "--pair", f"{protected},{Audit.load(audited).pairs[0][1]}", "--max-tilt", 199)
    assert gated.code != 2, gated.err
    fair = f"replay:{place}/candidates.trec>>fair-rerank(by=region,group={protected},target=100)"
    assert cli("rank", place, "-r", fair, "-o", tmp_path / "fair.trec").code == 0
    collection, run = load(place), Run.load(tmp_path / "fair.trec").frame()
    inside = {doc for doc in collection.ids if int(doc.partition("-")[2]) % 6 in members}
    for query in QUERIES:  # as many as a list has, before all others
        docs = run.filter(query_id=query).sort("rank")["doc_id"].to_list()
        assert [doc in inside for doc in docs] == sorted((doc in inside for doc in docs), reverse=True)
    choices = [
        {"query": query, "first": first, "second": second, "choice": first if first in inside else second}
        for query in QUERIES
        for one, two in zip(sorted(inside), sorted({*collection.ids} - inside), strict=False)
        for first, second in ((one, two), (two, one))
    ]
    stored = write(tmp_path / "choices.jsonl", "".join(f"{json.dumps(one)}\n" for one in choices))
    by = ("--by", "region", "--protected", protected, "--resamples", 100, "--json", chosen)
    assert cli("pairwise", place, "--decisions", stored, *by).code == 0
    found = PairwiseAudit.load(chosen)
    assert found.protected == side
    assert {one.protected.value for one in found.outcomes} == {1.0}


def test_a_list_with_one_item_of_a_group_is_warned_of(cli: Cli, tmp_path: Path) -> None:
    build = ("data", "build", "fair-ranking", people(tmp_path), "--protected", "female", "--items", 6)
    err = cli(*build, "--blocks", "3,0,2,1", "-o", tmp_path / "one").err
    assert "warning: 3 lists have fewer than 2 items of a group; their exposure ratio says little, or nothing\n" in err
