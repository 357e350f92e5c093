"""ranktilt pairwise: from a folder to a page, and everything that is refused before anything is
asked.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import ranktilt as rt
from tests.auditing.test_pairwise import people, tilted
from tests.cli.conftest import Cli, refused
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge
from tests.toy import run_of

QUICK = ("--set", "statistics.resamples=200")
BY = ("--by", "gender", "--protected", "female")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Women and men, relevant to twelve queries."""
    rt.save(people(queries=12, per_gender=3), tmp_path / "people")
    return tmp_path / "people"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """A model that likes men."""
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))
    with Server(answer=Judge(value=tilted)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def test_pairs_are_asked_about_kept_and_read_again(
    cli: Cli, folder: Path, server: Server, tmp_path: Path
) -> None:
    file, saved, page = tmp_path / "pairs.json", tmp_path / "choices.jsonl", tmp_path / "page.html"
    more = ("--save-decisions", saved, "--json", file, "-o", page)
    code, out, err = cli(
        "pairwise", folder, "--llm", "openai:tiny", *BY, "--pairs", 2, *QUICK, *more
    )
    assert code == 0
    assert "48 pairs of 12 queries: 96 prompts" in err
    assert len(server.requests) == 96 == len(saved.read_text().splitlines())
    assert "openai:tiny" in out
    result = rt.PairwiseAudit.load(file)
    assert result.spec["asker"] == "pairwise:openai:tiny(prompt=pairwise-neutral)"
    assert result.spec["command"].startswith("ranktilt pairwise ")
    figure = "How much more often than half the time female documents are chosen"
    assert figure in page.read_text()
    again, second_page = tmp_path / "again.json", tmp_path / "page2.html"
    assert cli("pairwise", folder, "--decisions", saved, *BY, *QUICK, "--json", again).code == 0
    assert rt.PairwiseAudit.load(again).outcomes == result.outcomes
    assert len(server.requests) == 96
    assert cli("report", file, "-o", second_page).code == 0
    assert figure in second_page.read_text()


def test_a_rehearsal_says_what_it_would_cost_and_asks_nothing(
    cli: Cli, folder: Path, server: Server
) -> None:
    model = ("pairwise", folder, "--llm", "openai:tiny", *BY, "--pairs", 2, *QUICK)
    code, out, _ = cli(*model, "--dry-run", "--price", "1,2")
    assert code == 0
    assert out.startswith("requests    96 (0 of 96 are answered already)\ntokens in   ")
    assert not server.requests
    assert cli(*model).code == 0
    assert cli(*model, "--dry-run").out.startswith(
        "requests    0 (96 of 96 are answered already)\n"
    )


def test_the_folders_own_candidates_are_taken(cli: Cli, folder: Path, server: Server) -> None:
    collection = rt.load(folder)
    names = {"q0": {f"{gender}-0-{n}": 1.0 for gender in ("female", "male") for n in range(2)}}
    run_of(collection, names).save(folder / "candidates.trec")
    code, out, err = cli("pairwise", folder, "--llm", "openai:tiny", *BY, *QUICK)
    assert code == 0
    assert "4 pairs of 1 query: 8 prompts" in err
    assert "11 queries without a text or candidates, so not asked" in out
    choices = ("--llm", "openai:tiny", "--save-decisions", folder / "candidates.trec")
    assert "candidates.trec: this file is read too" in refused(cli, "pairwise", folder, *choices)


def test_held_out_queries_alone_are_asked_about(
    cli: Cli, folder: Path, server: Server, tmp_path: Path
) -> None:
    """The file is what train lora writes: ids, one on each line."""
    file, saved = tmp_path / "held-out.txt", tmp_path / "choices.jsonl"
    file.write_text("q7\nq11\n")
    call = ("pairwise", folder, *BY, *QUICK, "--queries", file)
    code, _, err = cli(*call, "--llm", "openai:tiny", "--pairs", 2, "--save-decisions", saved)
    assert code == 0
    assert "8 pairs of 2 queries: 16 prompts" in err
    assert {json.loads(line)["query"] for line in saved.read_text().splitlines()} == {"q7", "q11"}
    assert cli(*call, "--llm", "openai:tiny", "--pairs", 2, "--dry-run").out.startswith(
        "requests    0 (16 of 16 "
    )
    assert cli(*call, "--decisions", saved).code == 0
    for text, message in (
        ("q7\n\nq12\n", ": query 'q12' is not in the collection"),
        ("\n \n", ": the file is empty"),
    ):
        file.write_text(text)
        assert refused(cli, *call, "--llm", "openai:tiny") == f"{file}{message}"
    assert len(server.requests) == 16


def test_two_models_are_compared_on_the_same_queries(
    cli: Cli, folder: Path, server: Server, tmp_path: Path
) -> None:
    before, after, result_path = (
        tmp_path / f"{name}.json" for name in ("before", "after", "found")
    )
    call = ("pairwise", folder, *BY, *QUICK, "--pairs", 3, "--llm")
    assert cli(*call, "openai:tiny", "--json", before).code == 0
    with Server(answer=Judge()) as fair:
        assert cli(*call, f"openai:tiny(base_url={fair.url})", "--json", after).code == 0
    code, out, _ = cli("compare", after, before, *QUICK, "--json", result_path)
    assert code == 0
    assert (
        "no difference from its old run in preference on relevant pairs is shown; these 12 queries "
        "would find"
    ) in out
    (tmp_path / "figures").mkdir()
    assert (
        cli("report", result_path, "--layout", "wang-fig4", "--figures", tmp_path / "figures").code
        == 0
    )
    assert (tmp_path / "figures" / "wang-figure-4.svg").exists()
    assert "| After |" in cli("report", result_path, "--format", "markdown").out


def test_a_sensitive_prompt_names_the_group(cli: Cli, folder: Path, server: Server) -> None:
    more = ("--prompt", "pairwise-sensitive", "--attribute", "female", "--pairs", 1)
    assert cli("pairwise", folder, "--llm", "openai:tiny", *BY, *QUICK, *more).code == 0
    text = server.bodies[0]["messages"][0]["content"]
    assert text.startswith("You are the search system for the female WikiProject coordinators")
    assert "\n[2] " in text


def test_length_of_answers_is_no_option_of_choices(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranktilt.toml").write_text(
        '[llm.judge]\nmodel = "openai:gpt-x"\nmax_tokens = 16\n', encoding="utf-8"
    )
    reason = "pairwise allows as many tokens as a choice takes"
    words = ("--by", "gender", "--dry-run")
    code, _, err = cli("pairwise", folder, "--llm", "judge", *words)
    assert code == 0, err
    assert f"--llm judge: max_tokens of [llm.judge] is not used: {reason}" in err
    code, _, err = cli("pairwise", folder, "--llm", "openai:gpt-x(max_tokens=16)", *words)
    assert code == 2
    assert f"omit max_tokens: {reason}" in err
