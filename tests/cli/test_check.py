"""ranktilt check and explain: 0 for a fair comparison, 1 for a void one; probes by name, and of
other packages.
"""

import csv
import io
import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest

import ranktilt as rt
from ranktilt.auditing.checks.instrument import InstrumentRow
from ranktilt.errors import UserError
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.explanation import Explanation
from ranktilt.explaining.factors.result import FactorEffects
from ranktilt.explaining.probe_table import PROBES, probe, probe_classes
from ranktilt.reporting.sentences.explaining.probes import findings_words
from tests.cli.conftest import Cli
from tests.explaining.checks import exclaiming, install
from tests.reporting.readers import Markup
from tests.toy import Judgment, collection_of, write, write_cocktail

Docs = list[dict[str, Any]]
COUNT = 40


def texts(kind: str) -> Docs:
    return [
        {
            "_id": f"d{n}",
            "title": "",
            "text": f"The {kind} tale of walk {n} along the coast. It was a fine day.",
        }
        for n in range(COUNT)
    ]


def folder_of(
    path: Path, *, llm: Docs | None = None, qrels: list[Judgment] | None = None, **options: Any
) -> Path:
    """Write forty pairs, each relevant to a query of its own; nothing about them is at fault unless
    asked for.
    """
    corpora = {"human": texts("first"), "llm": texts("other") if llm is None else llm}
    queries = [{"_id": f"q{n}", "text": f"walk {n}"} for n in range(COUNT)]
    judgments = [(f"q{n}", f"d{n}", 1) for n in range(COUNT)] if qrels is None else qrels
    return write_cocktail(path, corpora=corpora, queries=queries, qrels=judgments, **options)


def test_dangling_judgments_are_counted_not_refused(cli: Cli, tmp_path: Path) -> None:
    judgments = [
        *((f"q{n}", f"d{n}", 1) for n in range(COUNT)),
        ("q0", "gone", 1),
        ("q77", "d1", 1),
    ]
    code, out, _ = cli("check", folder_of(tmp_path / "one", qrels=judgments), "--format", "csv")
    row = {row["name"]: row for row in csv.DictReader(io.StringIO(out))}["dangling judgments"]
    assert code == 0
    # d1 of the unknown query counts for either side.
    assert (row["count"], row["verdict"], row["examples"]) == (
        "3",
        "warning",
        "q0 gone; q77 d1-human; q77 d1-llm",
    )


def test_every_limit_is_a_key_of_check(cli: Cli, tmp_path: Path) -> None:
    limits = {
        "max_missing": 11,
        "max_identical": 12,
        "max_boilerplate": 13,
        "max_refusals": 14,
        "max_cut_off": 15,
        "max_one_sided": 16,
        "min_length_ratio": 0.5,
        "max_length_ratio": 1.9,
        "near_identical": 0.7,
        "warn_above": 2,
    }
    options = list[str]()
    for key, value in limits.items():
        options += ["--set", f"check.{key}={value}"]
    saved = orjson.loads(cli("check", folder_of(tmp_path / "one"), "--json", "-", *options).out)
    assert saved["limits"] == limits


def test_limits_of_the_file_hold_and_set_wins_over_them(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ranktilt.toml", "[check]\nmax_missing = 3\nwarn_above = 4\n")
    check = ("check", folder_of(tmp_path / "one"), "--json", "-", "--set", "check.warn_above=2")
    limits = orjson.loads(cli(*check).out)["limits"]
    assert (limits["max_missing"], limits["warn_above"], limits["max_refusals"]) == (3, 2, 10)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("check.max_mising=1", "unknown key of [check] 'max_mising'; did you mean 'max_missing'?"),
        (
            "check.max_missing=ten",
            "[check] max_missing: expected points from 0 to 100, such as 5 or 5%; got ten",
        ),
        (
            "check.max_missing=101",
            "[check] max_missing: expected points from 0 to 100, such as 5 or 5%; got 101",
        ),
        (
            "check.equivalence=-1",
            "[check] equivalence: expected points from 0 to 100, such as 5 or 5%; got -1",
        ),
        ("check.min_length_ratio=2", "expected min_length_ratio below max_length_ratio, got 2"),
    ],
)
def test_limit_refusals(cli: Cli, bed: Path, assignment: str, message: str) -> None:
    refusal = cli("check", bed, "--set", assignment)
    assert (refusal.code, refusal.out) == (2, "")
    assert refusal.err.startswith(f"ranktilt: {message}")


def test_another_reference_and_split_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "one", split="dev")
    folder_of(folder, split="train", qrels=[("q1", "d1-llm", 1)])
    code, out, _ = cli("check", folder, "--split", "dev", "--reference", "llm")
    assert code == 0
    assert "Faults of a comparison with llm (those with a limit can void it)\n" in out
    assert cli("check", folder, "--split", "train").code == 1


@pytest.fixture
def bed(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "bed")


def test_fair_comparison_ends_with_0_and_runs_named_rankers(cli: Cli, bed: Path) -> None:
    code, out, err = cli("check", bed)
    assert (code, err) == (0, "")
    assert "A fair comparison of llm with human: no fault makes it unfair.\n" in out
    assert sum(line.endswith("  ok") for line in out.splitlines()) == 16
    for part in ("Documents by source", "How texts differ from their twins", "Terms shared with"):
        assert part in out
    assert "Effectiveness" not in out
    code, out, err = cli("check", bed, "-r", "bm25")
    assert (code, err, "Cosine" in out) == (0, "", False)
    equivalent = r"^ bm25 +100\.0 +100\.0 +\+0\.0 .*equivalent within ±2 points$"
    assert re.search(equivalent, out, re.MULTILINE)


def test_one_source_alone_ends_with_3(cli: Cli, bed: Path) -> None:
    (bed / "corpus" / "llm.jsonl").unlink()
    code, out, err = cli("check", bed, "-r", "bm25")
    assert code == 3
    assert "Nothing is compared: only source 'human' is left" in out
    assert "effectiveness is left out: there are no two sides to compare" in out + err


def test_instrument_is_a_sentence_a_ranker_and_decides_too(
    cli: Cli, bed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        InstrumentRow(
            ranker="bm25", question="nDCG@10", sides_named=60, tosses=200, low=0.24, high=0.37
        )
    ]

    def counted(*arguments: Any, **options: Any) -> tuple[InstrumentRow, ...]:
        return tuple(rows)

    monkeypatch.setattr("ranktilt.explaining.check.check_instrument", counted)
    file = tmp_path / "check.json"
    code, out, _ = cli("check", bed, "-r", "bm25", "--instrument", "--json", file)
    assert code == 1
    void = (
        "Not a fair comparison of llm with human: audits of bm25 favour a side too often (in 60 of "
        "200 tests where a coin decided who wrote what)."
    )
    assert void in out
    assert (
        "bm25 on nDCG@10: with sources set by a coin, 60 of 200 audits favour a side (30.0 % "
        "[24.0, 37.0]); too"
    ) in out
    assert CheckResult.load(file).instrument == tuple(rows)
    rows[0] = replace(rows[0], sides_named=9, low=0.02, high=0.08)
    assert cli("check", bed, "-r", "bm25", "--instrument").code == 0


def test_options_that_nothing_reads_are_refused(cli: Cli, bed: Path) -> None:
    measure = cli("check", bed, "-m", "nDCG@3")
    assert measure.code == 2
    assert measure.err == ("ranktilt: --measure needs a ranker: name one, such as -r bm25\n")
    assert cli("check", bed, "--text", "text").err == (
        "ranktilt: --text needs a ranker or an encoder: name one with -r or --similarity\n"
    )


def test_voiding_fault_ends_with_1_and_everything_is_written(cli: Cli, tmp_path: Path) -> None:
    docs = texts("other")
    for row in docs[: COUNT // 2]:
        row["text"] = f"I'm sorry, but I cannot do that. {row['text']}"
    file, spoilt = tmp_path / "found.json", folder_of(tmp_path / "bed", llm=docs)
    code, out, err = cli("check", spoilt, "-r", "bm25", "--json", file)
    assert (code, err) == (1, "")
    assert (
        "Not a fair comparison of llm with human: refusals (20 of 40, 50.0 %; allowed: ≤ 10 %)"
        in out
    )
    assert "Effectiveness on each side alone" in out
    assert json.loads(file.read_bytes())["fair"] is False


def test_rankers_measures_and_the_difference_that_does_not_matter(cli: Cli, bed: Path) -> None:
    rankers, measures = ("tfidf", "bm25(k1=0.9,b=0.4)"), ("nDCG@1", "AP@5")
    options = ["--set", "check.equivalence=10%", "--format", "csv"]
    for ranker in rankers:
        options += ["-r", ranker]
    for measure in measures:
        options += ["-m", measure]
    code, out, _ = cli("check", bed, *options)
    assert code == 0
    rows = [r for r in csv.DictReader(io.StringIO(out)) if r["part"] == "effectiveness"]
    assert {(row["run"], row["measure"]) for row in rows} == set(product(rankers, measures))
    assert {r["margin"] for r in rows} == {"0.1"}


@pytest.mark.neural
def test_vectors_of_an_encoder_are_compared_and_drawn(
    cli: Cli, bed: Path, tiny: Path, tmp_path: Path
) -> None:
    file, page = tmp_path / "found.json", tmp_path / "page.html"
    options = ("--similarity", f"dense:{tiny}", "--text", "text")
    code, out, _ = cli("check", bed, *options, "--json", file, "-o", page)
    assert code == 0
    assert f"Cosine similarity of llm, dense:{tiny}(text=text), text\n" in out
    content = json.loads(file.read_bytes())
    (near,) = content["similarity"]
    assert near["twins"]["count"] == near["other_pairs"]["count"] == COUNT
    assert near["twins"]["mean"] > near["other_pairs"]["mean"]
    assert (len(near["map"]["ids"]), near["map"]["of"]) == (2 * COUNT, COUNT)
    assert content["effectiveness"] == []
    assert str(tiny) in page.read_text(encoding="utf-8")


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what is written, with the package installed."""
    monkeypatch.syspath_prepend(install(tmp_path / "site"))
    return tmp_path


def test_a_probe_of_another_package_prints_everywhere(plugin: Path, cli: Cli) -> None:
    folder = rt.save(exclaiming(), plugin / "bed")
    code, out, err = cli("explain", folder, "--probe", "marks", "--json", plugin / "marks.json")
    assert (code, err) == (0, "")
    assert "marks: Do rewrites exclaim more than people?" in out
    assert out.startswith(
        "Largest difference from human: exclamation marks, higher in llm, by 2.18"
    )
    _, out, _ = cli("explain", folder, "--probe", "marks", "--format", "markdown")
    assert "### marks" in out
    assert "| llm | exclamation marks | +2.18 [" in out
    (marks,) = Explanation.load(plugin / "marks.json").results
    assert (marks.probe, marks.effects[0].pairs, marks.rows[1]["mean"]) == ("marks", 12, 3.0)
    assert (
        json.loads(cli("explain", folder, "--probe", "marks", "--json", "-")[1])["results"][0][
            "probe"
        ]
        == "marks"
    )


def test_probes_are_found_by_name(plugin: Path) -> None:
    assert set(probe_classes()) == {*PROBES, "theorem", "broken", "lost", "marks"}
    assert {name: probe(name).name for name in (*PROBES, "marks")} == {
        name: name for name in (*PROBES, "marks")
    }
    with pytest.raises(
        UserError,
        match=r"probe 'broken' of .* is not a subclass of ranktilt's "
        "Probe",
    ):
        probe("broken")
    with pytest.raises(
        UserError, match=r"probe 'lost' of .* \(exclaiming:Lost\) cannot be imported: .*Lost"
    ):
        probe("lost")


def test_attribution_is_a_table_a_ranker(cli: Cli, tmp_path: Path) -> None:
    """Rank gaps stand in CSV and JSON alone, and a file that is read back prints the same."""
    folder = rt.save(rt.bundled(), tmp_path / "bed")
    refusal = cli(
        "explain",
        folder,
        "--attribution",
        "-r",
        "bm25",
        "-r",
        "tfidf",
        "--json",
        tmp_path / "why.json",
    )[1]
    lines = refusal.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(" property ")]
    assert [lines[n - 2].partition(":")[0] for n in starts] == ["bm25, claude", "tfidf, claude"]
    for start in starts:
        assert lines[start + 2].startswith(" what remains ")
    assert "rank gap" not in refusal
    explanation = Explanation.load(tmp_path / "why.json")
    assert {row["of"] for row in explanation.results[0].rows} == {"score gap", "rank gap"}
    page, again = tmp_path / "why.html", tmp_path / "again.html"
    cli("explain", folder, "--attribution", "-r", "bm25", "-r", "tfidf", "-o", page)
    cli("report", tmp_path / "why.json", "-o", again)
    first, second = (Markup(path.read_text(encoding="utf-8")).text for path in (page, again))
    for table in explanation.results[0].tables:
        words = findings_words(table.findings)
        assert words in first
        assert words in second


def test_effects_of_factors_are_printed_saved_and_a_page(cli: Cli, tmp_path: Path) -> None:
    """Versions with a query's words stand higher under BM25, and rank as deep as a document has
    versions.
    """
    words = {"q0": "river", "q1": "apple"}
    docs = [
        {
            "id": f"d{n}{'-edited' * at}",
            "text": f"note {n} of {words[f'q{n % 2}']} {'water ' * (n % 5)}{extra}",
            "origin": f"d{n}",
            "factor:query-words": ("low", "high")[at],
        }
        for n in range(24)
        for at, extra in enumerate(("", words[f"q{n % 2}"]))
    ]
    grades = {
        q: {row["id"]: 1 for row in docs if int(row["origin"][1:]) % 2 == int(q[1:])} for q in words
    }
    folder = rt.save(collection_of(docs, words, grades), tmp_path / "twins")
    files = ("--json", tmp_path / "causes.json", "-o", tmp_path / "causes.html")
    code, out, _ = cli(
        "explain", folder, "--by-factor", "-r", "bm25@12", "--adopters", "0,100%", *files
    )
    assert code == 0
    assert "Does an edit still pay as more documents make it?" in out
    assert "bm25@12: 2 queries and 24 documents are too few to test." in out
    assert "not retrieved" not in out.replace("versions not retrieved rank below", "").replace(
        "0 where not retrieved", ""
    )
    effects = FactorEffects.load(tmp_path / "causes.json")
    assert effects.rows[0].low > 0
    assert effects.spec["command"].startswith("ranktilt explain")
    cli("report", tmp_path / "causes.json", "-o", tmp_path / "again.html")
    pages = [
        Markup((tmp_path / name).read_text(encoding="utf-8")).text
        for name in ("causes.html", "again.html")
    ]
    assert all("What each factor does to the rank" in text for text in pages)
