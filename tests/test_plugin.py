"""A ranker of another package, installed as pip would leave it, works wherever a ranker is named."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import ranktilt as rt
from tests.toy import TEXTS, write, write_cocktail

CODE = '''
"""Ranks by length: a ranker that also re-ranks."""

from dataclasses import dataclass

import polars as pl

import ranktilt as rt


@dataclass(frozen=True)
class Shortest(rt.Ranker):
    """Short documents first, whatever was asked."""

    name = "shortest"
    k: int = 100
    longest: bool = False

    def rank(self, collection, run=None):
        sign = 1.0 if self.longest else -1.0
        lengths = collection.docs.select(doc_id="id", score=sign * pl.col("text").str.len_chars())
        queries = collection.judged.select(query_id="id")
        found = queries.join(lengths, how="cross")
        if run is not None:
            found = run.frame().select("query_id", "doc_id").join(lengths, on="doc_id", maintain_order="left")
        best = found.sort("score", descending=True).group_by("query_id", maintain_order=True).head(self.k)
        return rt.Run.from_frame(best, queries=queries["query_id"], spec={"ranker": repr(self)})


@dataclass(frozen=True)
class Nothing(rt.Ranker):
    """Gives no run."""

    name = "nothing"

    def rank(self, collection, run=None):
        return [doc for doc in collection.ids]
'''
QUICK = ("--resamples", "200")
LENGTHS = {f"{bare}-{source}": len(text) for source, texts in TEXTS.items() for bare, text in texts.items()}


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def install(site: Path, name: str, code: str, *points: str, version: str = "1.0") -> Path:
    """Leave a package of one module as pip does: the module, and a dist-info with its entry points."""
    write(site / f"{name}.py", code)
    project = name.replace("_", "-")
    info = site / f"{name}-{version}.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
    write(info / "entry_points.txt", "\n".join(["[ranktilt.rankers]", *points, ""]))
    return site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Leave two packages in a folder, and the toy beside it."""
    site = tmp_path / "site"
    install(site, "shortest_first", CODE, "shortest = shortest_first:Shortest", "nothing = shortest_first:Nothing")
    install(site, "broken_one", "import a_module_that_nobody_has\n", "broken = broken_one:Ranker")
    write_cocktail(tmp_path / "toy")
    return site


@pytest.fixture
def ranktilt(site: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run the command where the packages are found, in the folder of the toy."""
    from ranktilt.cli.main import main

    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(site.parent)

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["ranktilt", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Ended(int(end.value.code or 0), *capfd.readouterr())

    yield run
    for name in ("shortest_first", "broken_one"):
        sys.modules.pop(name, None)


def ranked(file: Path) -> dict[str, list[str]]:
    """Documents of each query in a TREC file, in order."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return {query: [line[2] for line in lines if line[0] == query] for query in {line[0]: None for line in lines}}


def test_it_ranks(site: Path, tmp_path: Path) -> None:
    code = "from ranktilt.cli.main import main; main()"
    command = [sys.executable, "-c", code, "rank", "toy", "-r", "shortest@4", "-o", "run.trec", "--quiet"]
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = ranked(tmp_path / "run.trec")
    assert list(found) == ["q1", "q2", "q3"]
    assert all([LENGTHS[doc] for doc in docs] == sorted(LENGTHS.values())[:4] for docs in found.values())
    assert json.loads((tmp_path / "run.trec.json").read_text())["ranker"] == "shortest@4"


def test_its_options_are_typed_like_ours(ranktilt: Run, tmp_path: Path) -> None:
    ranktilt("rank", "toy", "-r", "shortest(longest=true)@1", "-o", "run.trec")
    assert {LENGTHS[doc] for docs in ranked(tmp_path / "run.trec").values() for doc in docs} == {max(LENGTHS.values())}
    assert rt.Run.load(tmp_path / "run.trec").name == "shortest(longest=true)@1"


def test_it_re_ranks_what_bm25_found(ranktilt: Run, tmp_path: Path) -> None:
    ranktilt("rank", "toy", "-r", "bm25", "-r", "bm25>>shortest", "-r", "bm25@2>>shortest@1", "-o", "runs/")
    first, both, short = (
        ranked(tmp_path / "runs" / f"{n}.trec") for n in ("bm25", "bm25_shortest", "bm25@2_shortest@1")
    )
    assert {query: sorted(docs) for query, docs in both.items()} == {q: sorted(docs) for q, docs in first.items()}
    assert all([LENGTHS[d] for d in docs] == sorted(LENGTHS[d] for d in docs) for docs in both.values())
    assert short == {query: [min(docs[:2], key=LENGTHS.__getitem__)] for query, docs in first.items()}


@pytest.mark.parametrize("spec", ["shortest@20", "bm25>>shortest@20"])
def test_it_is_audited_like_any_other(ranktilt: Run, tmp_path: Path, spec: str) -> None:
    done = ranktilt("audit", "toy", "-r", spec, "-r", "bm25", *QUICK, "--json", "now.json")
    assert done.code == 0
    assert f"\n {spec}\n" in done.out
    ranktilt("rank", "toy", "-r", spec, "-o", "run.trec")
    ranktilt("audit", "toy", "--run", "run.trec", "-r", "bm25", *QUICK, "--json", "later.json")
    now, later = (json.loads((tmp_path / name).read_text())["tilts"] for name in ("now.json", "later.json"))
    names = {tilt.pop("run") for tilt in now}, {tilt.pop("run") for tilt in later}
    assert names == ({spec, "bm25"}, {"run", "bm25"})
    by_value = [sorted(tilts, key=lambda t: json.dumps(t, sort_keys=True)) for tilts in (now, later)]
    assert by_value[0] == by_value[1]


@pytest.mark.parametrize(("spec", "delta"), [("bm25>>shortest", 40.0), ("bm25>>shortest(longest=true)", 0.0)])
def test_its_ranking_is_what_is_measured(ranktilt: Run, spec: str, delta: float) -> None:
    """By hand, from the lengths of q1's, q2's and q3's candidates: 38 and 40; 39 and 39; 38, 39 and, not relevant, 38.

    Shortest first, nDCG@1 of human is 1, 1/2, 0 and of llm 0, 1/2, 1/2: 200 (1/2 - 1/3) / (1/2 + 1/3) = 40. Longest
    first it is 0, 1/2, 1 and 1, 1/2, 0.
    """
    out = ranktilt("audit", "toy", "-r", spec, *QUICK, "-m", "nDCG@1", "--format", "csv").out.splitlines()
    tilt = next(row for row in out if row.startswith("tilts,") and ",relative delta," in row)
    row = dict(zip(out[0].split(","), tilt.split(","), strict=True))
    assert float(row["value"]) == pytest.approx(delta)


def test_the_models_verb_lists_it(ranktilt: Run) -> None:
    done = ranktilt("tools", "doctor")
    assert done.code == 0
    assert done.out.splitlines()[-1] == (
        "Rankers of other packages: broken (broken-one 1.0), nothing (shortest-first 1.0), "
        "shortest (shortest-first 1.0)."
    )


def test_a_wrong_name_or_option_names_it_too(ranktilt: Run) -> None:
    assert "did you mean 'shortest'? (valid: bm25" in ranktilt("audit", "toy", "-r", "shortes").err
    done = ranktilt("audit", "toy", "-r", "shortest(deepest=1)")
    assert done == (2, "", "ranktilt: unknown option of shortest 'deepest' (valid: longest)\n")


@pytest.mark.parametrize("verb", ["audit", "rank"])
def test_a_package_that_cannot_be_imported_is_one_line(ranktilt: Run, tmp_path: Path, verb: str) -> None:
    arguments = ["toy", "-r", "bm25", "-r", "bm25>>broken", *(["-o", "runs/"] if verb == "rank" else [])]
    done = ranktilt(verb, *arguments)
    assert done == (
        2,
        "",
        "ranktilt: ranker 'broken' of broken-one 1.0 (broken_one:Ranker) cannot be imported: "
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has'\n",
    )
    assert not (tmp_path / "runs").exists()


def test_a_package_that_cannot_be_imported_hinders_no_other(ranktilt: Run) -> None:
    assert ranktilt("rank", "toy", "-r", "shortest@1", "-o", "-", "--quiet").code == 0


def test_debug_shows_where_a_package_fails(ranktilt: Run) -> None:
    done = ranktilt("audit", "toy", "-r", "broken", "--debug")
    assert "broken_one.py" in done.err
    assert "Traceback" in done.err


def test_what_is_no_run_is_refused(ranktilt: Run, tmp_path: Path) -> None:
    done = ranktilt("rank", "toy", "-r", "nothing", "-o", "run.trec")
    assert done == (2, "", "ranktilt: ranker nothing gave list, expected a Run\n")
    assert not (tmp_path / "run.trec").exists()


@pytest.mark.parametrize("spec", ["bm25@0", "tfidf@0"])
def test_a_depth_of_nothing_is_refused_for_every_ranker(spec: str) -> None:
    with pytest.raises(rt.UserError, match=r"^\w+: expected a depth of at least 1, got @0$"):
        rt.ranker(spec)
