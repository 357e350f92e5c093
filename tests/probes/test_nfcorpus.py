"""The table of NFCorpus in docs/explain.md: what stands there is what the probes find."""

import re
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.probes.explain import Explanation
from ranktilt.reporting.output import table
from tests.house.tree import ROOT

CHEAP = ["statistics", "overlap", "type-token", "specificity", "query-words", "sentences", "readability"]


@pytest.fixture(scope="module")
def found(shared_data: Path) -> Explanation:
    return rt.explain(rt.load(shared_data / "cocktail-nfcorpus"), CHEAP)


@pytest.mark.data
@pytest.mark.long
def test_the_documented_numbers_are_those_of_the_probes(found: Explanation) -> None:
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    documented = {line.split(" | ")[0][2:]: line for line in page.splitlines() if line.startswith("| ") and "[" in line}
    printed = [line.split(" | ") for line in table(found, "markdown").splitlines() if line.startswith("| llama")]
    effects = [cells for cells in printed if len(cells) == len(printed[0])][:7]
    assert [cells[1] for cells in effects][:2] == ["distinct terms", "words"]
    for _, what, g, interval, pairs, *means in effects:
        assert documented[what] == " | ".join([f"| {what}", g, interval.replace("\\", ""), *means])
        assert pairs == ("3,128" if what == "share of query words" else "3,633")
    overlap = found.results[1]
    assert [round(row["mean"], 2) for row in overlap.rows] == [0.58, 0.69]
    assert re.search(r"mean overlap 0\.69, Jaccard 0\.58", page)
    assert found.notes == ("llama-2-7b-chat-tmp0.2: 2 twins are identical to those of human",)
