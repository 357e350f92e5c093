"""ranktilt check: exit 0 for a fair comparison, 1 for a void one, 2 for what cannot be checked."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.conftest import Cli, refused
from tests.toy import raw_docs, write_beir, write_cocktail

Docs = list[dict[str, Any]]
COUNT = 20


def texts(kind: str) -> Docs:
    return [
        {"_id": f"d{n}", "title": "", "text": f"The {kind} tale of walk {n} along the coast. It was a fine day."}
        for n in range(COUNT)
    ]


def folder_of(
    path: Path, *, llm: Docs | None = None, qrels: list[tuple[str, str, int]] | None = None, **options: Any
) -> Path:
    """Write twenty pairs, each relevant to a query of its own; nothing about them is at fault unless asked for."""
    corpora = {"human": texts("first"), "llm": texts("other") if llm is None else llm}
    queries = [{"_id": f"q{n}", "text": f"walk {n}"} for n in range(COUNT)]
    judgments = [(f"q{n}", f"d{n}", 1) for n in range(COUNT)] if qrels is None else qrels
    return write_cocktail(path, corpora=corpora, queries=queries, qrels=judgments, **options)


def spoiled(edit: Callable[[dict[str, Any]], dict[str, Any]], share: float = 0.5) -> Docs:
    return [edit(row) if n < share * COUNT else row for n, row in enumerate(texts("other"))]


def text(of: Callable[[str], str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {**row, "text": of(row["text"])}


FAULTS: dict[str, tuple[Docs, str]] = {
    "refusals": (spoiled(text(lambda t: f"I'm sorry, but I cannot do that. {t}")), "--max-refusals=50"),
    "cut-off endings": (spoiled(text(lambda t: t + " And then the")), "--max-cut-off=50"),
    "length ratio": (spoiled(text(lambda t: t * 2), share=1), "--max-length-ratio=2"),
}


def test_a_fair_comparison_ends_with_0(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("check", folder_of(tmp_path / "fair"))
    assert (code, err) == (0, "")
    assert "A fair comparison of llm with human: nothing found that voids it.\n" in out
    assert sum(line.endswith("  ok") for line in out.splitlines()) == 16


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_ends_with_1_and_is_named(cli: Cli, tmp_path: Path, fault: str) -> None:
    docs, option = FAULTS[fault]
    folder = folder_of(tmp_path / "spoiled", llm=docs)
    code, out, err = cli("check", folder)
    assert (code, err) == (1, "")
    assert [line[1:].split("  ")[0] for line in out.splitlines() if "   void " in line] == [fault]
    assert f"Void because of {fault} (" in out
    assert cli("check", folder, option).code == 0


def test_dangling_judgments_are_counted_not_refused(cli: Cli, tmp_path: Path) -> None:
    judgments = [*((f"q{n}", f"d{n}", 1) for n in range(COUNT)), ("q0", "gone", 1), ("q77", "d1", 1)]
    code, out, _ = cli("check", folder_of(tmp_path / "one", qrels=judgments), "--format", "csv")
    row = {row["name"]: row for row in csv.DictReader(io.StringIO(out))}["dangling judgments"]
    assert code == 0
    # d1 of the unknown query counts for either side.
    assert (row["found"], row["verdict"], row["examples"]) == ("3", "warning", "q0 gone; q77 d1-human; q77 d1-llm")


def test_json_holds_the_whole_check(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "one", llm=FAULTS["cut-off endings"][0])
    code, out, _ = cli("check", folder, "--json", tmp_path / "new" / "check.json", "--max-identical", "7")
    found = orjson.loads((tmp_path / "new" / "check.json").read_bytes())
    assert code == 1
    assert "Void because of cut-off endings" in out
    assert (found["fair"], found["limits"]["identical"], found["spec"]["split"]) == (False, 7.0, "test")
    assert {row["name"]: row["found"] for row in found["rows"]}["cut-off endings"] == 10


@pytest.mark.parametrize(
    ("option", "value", "path"),
    [
        ("--max-missing", 11, "missing"),
        ("--max-identical", 11, "identical"),
        ("--max-boilerplate", 11, "boilerplate"),
        ("--max-refusals", 11, "refusals"),
        ("--max-cut-off", 11, "cut_off"),
        ("--max-one-sided", 11, "one_sided"),
        ("--min-length-ratio", 0.5, "shortest"),
        ("--max-length-ratio", 1.9, "longest"),
        ("--near-identical", 0.7, "near_identical"),
        ("--warn-above", 2, "notice"),
    ],
)
def test_every_limit_is_an_option(cli: Cli, tmp_path: Path, option: str, value: float, path: str) -> None:
    folder = folder_of(tmp_path / "one")
    default = orjson.loads(cli("check", folder, "--json", "-").out)["limits"]
    changed = orjson.loads(cli("check", folder, "--json", "-", option, str(value)).out)["limits"]
    assert changed == {**default, path: value}
    assert default[path] != value


def test_another_reference_and_split_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "one", split="dev")
    folder_of(folder, split="train", qrels=[("q1", "d1-llm", 1)])
    code, out, _ = cli("check", folder, "--split", "dev", "--reference", "llm")
    assert code == 0
    assert "Faults that would void a comparison with llm\n" in out
    assert cli("check", folder, "--split", "train").code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/none"], "{tmp}/none: no such folder"),
        (["{lone}"], "nothing to compare: only source 'human'; expected two sources"),
        (["{one}", "--reference", "gpt"], "unknown source 'gpt' (valid: human, llm)"),
        (["{one}", "--split", "dev"], "{one}/qrels: unknown split 'dev' (valid: test); choose one with --split"),
        (["{one}", "--max-missing", "120"], "limit 'missing': expected 0 to 100 %, got 120"),
        (
            ["{one}", "--min-length-ratio", "3"],
            "limits of the length ratio: expected the lower below the upper, got 3 ",
        ),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(
    cli: Cli, tmp_path: Path, arguments: list[str], message: str
) -> None:
    places = {"tmp": tmp_path, "one": folder_of(tmp_path / "one"), "lone": write_beir(tmp_path / "l", docs=raw_docs())}
    before = sorted(tmp_path.rglob("*"))
    got = refused(cli, "check", *(argument.format(**places) for argument in arguments))
    assert got.startswith(message.format(**places))
    assert sorted(tmp_path.rglob("*")) == before
