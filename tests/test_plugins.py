"""A ranker of another package, installed as pip would leave it, works wherever a ranker is
named.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.registry import foreign_rankers, ranker_class, ranker_names
from tests.cli.conftest import Cli, cli
from tests.refusals import refused
from tests.toy import toy, write, write_cocktail

CODE = '''
"""Ranks by length: a ranker that also re-ranks; and much that is no ranker."""

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
        queries = collection.queries_with_judgments.select(query_id="id")
        found = queries.join(lengths, how="cross")
        if run is not None:
            rows = run.frame().select("query_id", "doc_id")
            found = rows.join(lengths, on="doc_id", maintain_order="left")
        best_first = found.sort("score", descending=True)
        best = best_first.group_by("query_id", maintain_order=True).head(self.k)
        return rt.Run.from_frame(best, queries=queries["query_id"], spec={"ranker": repr(self)})


@dataclass(frozen=True)
class Nothing(rt.Ranker):
    """Gives no run."""

    name = "nothing"

    def rank(self, collection, run=None):
        return [doc for doc in collection.ids]


class Stranger:
    pass


@dataclass(frozen=True)
class Idle(rt.Ranker):
    name = "odd"


class Plain(rt.Ranker):
    name = "odd"

    def rank(self, collection, run=None):
        pass


@dataclass(frozen=True)
class Renamed(Plain):
    name = "even"


@dataclass(frozen=True)
class Needy(Plain):
    host: str
    port: int
    depth: int = 1


@dataclass(frozen=True)
class Shallow(Plain):
    depth: int = 1


@dataclass(frozen=True)
class Deep(Shallow):
    name = "deep"


@dataclass(frozen=True)
class Named(Plain):
    argument = "index"
    index: str
'''
__all__ = ["cli"]  # a fixture that runs the command
QUICK = ("--set", "statistics.resamples=200")
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Leave a package of one module in `site` as pip does: the module, and a dist-info with its
    entry points.
    """
    site, before = tmp_path / "site", set(sys.modules)

    def installed(name: str, code: str, *points: str) -> None:
        write(site / f"{name}.py", code)
        info, project = site / f"{name}-1.0.dist-info", name.replace("_", "-")
        write(info / "METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
        write(info / "entry_points.txt", "\n".join(["[ranktilt.rankers]", *points, ""]))
        monkeypatch.syspath_prepend(site)

    yield installed
    for name in {name for name in set(sys.modules) - before if str(site) in str(sys.modules[name])}:
        del sys.modules[name]


@pytest.fixture
def ranktilt(install: Install, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run the command where two packages are found, in the folder of the toy."""
    install(
        "shortest_first",
        CODE,
        "shortest = shortest_first:Shortest",
        "nothing = shortest_first:Nothing",
    )
    install("broken_one", "import a_module_that_nobody_has\n", "broken = broken_one:Ranker")
    write_cocktail(tmp_path / "toy")
    monkeypatch.chdir(tmp_path)
    return cli


OURS = ranker_names()


@pytest.mark.parametrize("name", OURS)
def test_the_table_of_names_is_true(name: str) -> None:
    assert ranker_class(name).name == name


def test_a_ranker_of_another_package_is_found_and_ours_cannot_be_taken(install: Install) -> None:
    points = [f"{name} = shortest_first:Shortest" for name in ("zeta", "shortest", "bm25")]
    install("shortest_first", CODE, *points)
    assert foreign_rankers() == [("shortest", "shortest-first 1.0"), ("zeta", "shortest-first 1.0")]
    assert "shortest_first" not in sys.modules, "listed without being imported"
    assert ranker_names() == [*OURS, "shortest", "zeta"]
    assert type(rt.ranker("bm25")).__name__ == "BM25"
    shortest_first = rt.ranker("shortest(longest=true)@1")
    assert repr(shortest_first) == "shortest(longest=true)@1"
    assert rt.ranker(repr(shortest_first)) == shortest_first
    assert shortest_first.rank(toy()).frame()["doc_id"].to_list() == ["d1-llm"] * 3


@pytest.mark.parametrize(
    ("code", "value", "fault"),
    [
        (CODE, "Stranger", "is no subclass of ranktilt's Ranker"),
        (CODE, "pl", "is no subclass of ranktilt's Ranker"),
        (CODE, "Idle", "does not implement rank"),
        (CODE, "Plain", "is no dataclass; put @dataclass(frozen=True) above it"),
        (CODE, "Renamed", "calls itself 'even'; its name and its entry point's must be one"),
        (CODE, "Needy", "needs a default for host and port: options may be left out"),
        (
            CODE,
            "Gone",
            "cannot be imported: AttributeError: module 'odd_ranker' has no attribute 'Gone'",
        ),
        (
            "import nobody_has",
            "Odd",
            "cannot be imported: ModuleNotFoundError: No module named 'nobody_has'",
        ),
        (
            "raise RuntimeError('no licence\\nsecond line')",
            "Odd",
            "cannot be imported: RuntimeError: no licence",
        ),
        ("raise KeyError", "Odd", "cannot be imported: KeyError"),
    ],
)
def test_what_is_no_ranker_is_refused(install: Install, code: str, value: str, fault: str) -> None:
    install("odd_ranker", code, f"odd = odd_ranker:{value}")
    with refused(f"ranker 'odd' of odd-ranker 1.0 (odd_ranker:{value}) {fault}"):
        rt.ranker("bm25>>odd")


def test_options_of_a_foreign_ranker(install: Install) -> None:
    install("named_ranker", CODE, "odd = named_ranker:Named")
    assert repr(rt.ranker("odd:my.index")) == "odd:my.index", "an argument needs no default"
    install("odd_ranker", CODE, "odd = odd_ranker:Shallow")
    with refused(
        "ranker 'odd' is provided by named-ranker 1.0 and odd-ranker 1.0; uninstall all but one"
    ):
        rt.ranker("odd")
    install("deep_ranker", CODE, "deep = deep_ranker:Deep")
    assert repr(rt.ranker("deep(depth=3)")) == "deep(depth=3)"
    with refused("deep takes no depth, got @5"):
        rt.ranker("deep@5")


@pytest.mark.parametrize(
    ("spec", "delta"), [("bm25>>shortest", 40.0), ("bm25>>shortest(longest=true)", 0.0)]
)
def test_its_ranking_is_what_is_measured_at_once_or_from_its_file(
    ranktilt: Cli, tmp_path: Path, spec: str, delta: float
) -> None:
    """By hand, from the lengths of q1's, q2's and q3's candidates: 38 and 40; 39 and 39; 38, 39
    and, not relevant, 38.

    Shortest first, nDCG@1 of human is 1, 1/2, 0 and of llm 0, 1/2, 1/2: 200 (1/2 - 1/3) / (1/2 +
    1/3) = 40. Longest first it is 0, 1/2, 1 and 1, 1/2, 0.
    """
    audited = ("-r", "bm25", *QUICK, "-m", "nDCG@1", "--json", "audit.json")
    ranktilt("rank", "toy", "-r", spec, "-o", "run.trec")
    for ranked_by in (("-r", spec), ("--run", "run.trec")):
        assert ranktilt("audit", "toy", *ranked_by, *audited).code == 0
        tilts = json.loads((tmp_path / "audit.json").read_text())["tilts"]
        (tilt,) = (tilt for tilt in tilts if tilt["run"] != "bm25")
        assert tilt["value"] == pytest.approx(delta)


BROKEN = (
    "ranktilt: ranker 'broken' of broken-one 1.0 (broken_one:Ranker) cannot be imported: "
    "ModuleNotFoundError: No module named 'a_module_that_nobody_has'\n"
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "audit toy -r shortest(deepest=1)",
            "ranktilt: unknown option of shortest 'deepest' (valid: longest)\n",
        ),
        ("audit toy -r bm25 -r bm25>>broken", BROKEN),
        ("rank toy -r bm25 -r bm25>>broken -o out/", BROKEN),
        (
            "rank toy -r nothing -o out/run.trec",
            "ranktilt: ranker nothing gave list, expected a Run\n",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    ranktilt: Cli, tmp_path: Path, line: str, message: str
) -> None:
    assert ranktilt(*line.split()) == (2, "", message)
    assert not list(tmp_path.rglob("out/*.trec"))


def test_it_is_listed_and_one_that_cannot_be_imported_hinders_no_other(ranktilt: Cli) -> None:
    assert "did you mean 'shortest'? (valid: bm25" in ranktilt("audit", "toy", "-r", "shortes").err
    assert ranktilt("rank", "toy", "-r", "shortest@1", "-o", "-", "--quiet").code == 0
    error = ranktilt("audit", "toy", "-r", "broken", "--debug").err
    assert "broken_one.py" in error
    assert "Traceback" in error
    names = "broken (broken-one 1.0), nothing (shortest-first 1.0), shortest (shortest-first 1.0)"
    assert ranktilt("tools", "doctor").out.endswith(f"\nRankers of other packages: {names}.\n")
