"""``ranktilt cite DIR --llm``: a model behind a real server answers, is priced and audited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ranktilt.citing.experiment.result import ContextExperiment
from ranktilt.citing.result import CitationAudit
from ranktilt.data.collection import Collection
from ranktilt.data.save import save
from ranktilt.explaining.factors.result import FactorEffects
from tests.citing.planted import (
    Chance,
    Document,
    fair,
    fond_of_human_label,
    planted_answer,
    ranked_run,
    shown_documents,
    twin_collection,
)
from tests.cli.conftest import Cli, refused
from tests.llm.batch_server import BatchServer
from tests.llm.server import Faults, Server
from tests.llm.stories import make_stories
from tests.toy import collection_of, run_of

QUERIES, ORIGINS = 24, 40
SETTINGS = ("--set", "statistics.resamples=300")


@pytest.fixture
def folder(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of twins, and a run that ranks one version of each document."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-testing")
    collection = twin_collection(QUERIES, ORIGINS)
    save(collection, tmp_path / "shop")
    ranked_run(collection, ORIGINS, depth=12, is_mixed=True).save(tmp_path / "mixed.trec")
    return tmp_path


def citing_server(chance: Chance, **options: Any) -> Server:
    """Return a server whose model cites by chance."""
    return Server(
        lambda messages, _body: planted_answer(messages[-1]["content"], chance), **options
    )


def words(server: Server, *more: str) -> tuple[str, ...]:
    model = f"openai:tiny(base_url={server.url})"
    return ("cite", "shop", "--llm", model, "--run", "mixed.trec", *more)


@pytest.fixture
def fair_server() -> Iterator[Server]:
    with citing_server(fair) as server:
        yield server


def test_price_sends_nothing(folder: Path, cli: Cli, fair_server: Server) -> None:
    dry = cli(*words(fair_server, "--dry-run", "--price", "1,2", "--repeats", "3"))
    assert (dry.code, fair_server.requests) == (0, [])
    lines = dict(line.split("  ", 1) for line in dry.out.splitlines())
    assert lines["answers"].strip() == "72 answers"
    assert lines["requests"].strip() == "72 (0 of 72 are answered already)"
    assert lines["tokens out"].strip() == "10,800, if an answer has 150 tokens"


def test_answers_are_audited_saved_and_never_asked_twice(
    folder: Path, cli: Cli, fair_server: Server
) -> None:
    options = ("--save-answers", "a.jsonl", "--json", "a.json", "-o", "a.html", *SETTINGS)
    first = cli(*words(fair_server, *options))
    assert first.code == 0, first.err
    assert len(fair_server.requests) == QUERIES
    assert "tiny: 24 of 24 requests answered; asked for 24 answers" in first.err
    assert "tiny wrote 24 answers to 24 queries, each from up to 10 documents of mixed" in first.out
    assert "domain" not in first.out
    assert "each document of the collection counts by itself" in first.out
    again = cli(*words(fair_server, *options))
    assert len(fair_server.requests) == QUERIES
    assert again.out == first.out
    audit = CitationAudit.load(folder / "a.json")
    assert audit.counts.retrieved == QUERIES * 12
    assert audit.counts.consulted == QUERIES * 10
    assert audit.spec["answers"]["prompt"]["name"] == "numbered"
    records = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    assert [len(record["consulted"]) for record in records] == [10] * QUERIES
    page = (folder / "a.html").read_text(encoding="utf-8")
    assert "From stage to stage" in page
    assert cli("gate", "a.json").code in (0, 3)
    saved = cli("cite", "a.jsonl", "--groups", "shop", "--run", "mixed.trec", *SETTINGS)
    assert saved.code == 0, saved.err
    assert first.out.split("\n")[4] == saved.out.split("\n")[4], "the primary question"


def test_twins_and_labels_are_compared_and_gated(folder: Path, cli: Cli) -> None:
    options = ("--twins", "--show-label", "true", "--show-label", "swapped", *SETTINGS)
    with citing_server(fond_of_human_label) as server:
        done = cli(*words(server, *options, "--json", "e.json", "-o", "e.html"))
        assert len(server.requests) == QUERIES * 2 * 2
    assert done.code == 0, done.err
    experiment = ContextExperiment.load(folder / "e.json")
    effects = {effect.question: effect for effect in experiment.primary}
    assert effects["label"].verdict(5.0) == "b"
    assert effects["version"].verdict(5.0) == "inconclusive"
    assert experiment.headline.startswith("Where its label alone decides whether a text is cited")
    assert "Leave authors out of the prompt" in (folder / "e.html").read_text(encoding="utf-8")
    gated = cli("gate", "e.json", "--max-tilt", "5")
    assert gated.code == 1
    assert cli("report", "e.json", "-o", "r.html").code == 0


def test_twins_name_the_command_that_adds_labels(
    folder: Path, cli: Cli, fair_server: Server
) -> None:
    done = cli(*words(fair_server, "--twins", "--limit", "12", *SETTINGS))
    assert done.code == 0, done.err
    assert "Next: See whether the author's name decides: ranktilt cite shop" in done.out
    assert "--twins --limit 12" in done.out
    assert "--show-label true --show-label swapped" in done.out


def test_faults_are_survived_and_what_is_missing_is_asked_again(folder: Path, cli: Cli) -> None:
    faults = Faults(share=0.3, kinds=("500", "drop", "malformed"))
    with citing_server(fair, faults=faults) as server:
        done = cli(*words(server, "--limit", "10", *SETTINGS))
        assert (done.code, len(server.answered)) == (0, 10)
    script = ["content-filter-400", *["too-long"] * 2]
    with citing_server(fair, script=script) as server:
        model = f"openai:tiny(base_url={server.url},concurrency=1)"
        options = ("--run", "mixed.trec", "--limit", "9", "--order", "ranked", *SETTINGS)
        done = cli("cite", "shop", "--llm", model, *options)
        assert done.code == 0, done.err
        assert "warning: 1 of 9 requests gave no answer (1 filtered)" in done.out
        assert "warning: 2 of 8 prompts did not fit the model" in done.out
        assert len(server.requests) == 11
        again = cli("cite", "shop", "--llm", model, *options)
        assert len(server.requests) == 13, "what did not fit is tried again, its cut is known"
        assert "warning: 1 of 9 requests gave no answer (1 filtered)" in again.out


def test_long_documents_are_cut_until_the_prompt_fits(folder: Path, cli: Cli) -> None:
    collection = twin_collection(QUERIES, ORIGINS)
    long_texts = collection.docs["text"] + " and more of it" * 60
    docs = collection.docs.with_columns(text=long_texts)
    save(Collection(docs, collection.queries, collection.qrels), folder / "long")
    options = ("--run", "mixed.trec", "--limit", "12", *SETTINGS)
    with citing_server(fair, context=1_200) as server:
        model = f"openai:tiny(base_url={server.url})"
        done = cli("cite", "long", "--llm", model, *options)
        prompts = [body["messages"][-1]["content"] for body in server.answered]
    assert done.code == 0, done.err
    assert "12 of 12 requests answered" in done.err
    assert "warning: 12 of 12 prompts did not fit the model: their longest documents" in done.out
    for prompt in prompts:
        lengths = {len(document.text.split()) for document in shown_documents(prompt)}
        assert len(lengths) == 1, "all are cut to one length"
        assert lengths.pop() > 50
    with citing_server(fair, context=10) as server:
        model = f"openai:tiny(base_url={server.url})"
        nothing = cli("cite", "long", "--llm", model, *options)
    assert nothing.code == 2
    assert "no answer to 12 requests (12 too long)" in nothing.err


def test_unanswered_requests_end_with_1_and_are_asked_again(folder: Path, cli: Cli) -> None:
    with citing_server(fair, script=["503", None, "503"]) as server:
        model = f"openai:tiny(base_url={server.url},concurrency=1,retries=0)"
        options = ("--run", "mixed.trec", "--limit", "8", "--json", "a.json", *SETTINGS)
        done = cli("cite", "shop", "--llm", model, *options)
        assert done.code == 1, done.err
        assert "2 requests got no answer (" in done.err
        assert "run the command again to ask only for these" in done.err
        assert CitationAudit.load(folder / "a.json").counts.answers == 6
        again = cli("cite", "shop", "--llm", model, *options)
        assert (again.code, len(server.requests)) == (0, 10)


def test_batches_answer_at_half_price(folder: Path, cli: Cli) -> None:
    answer = lambda messages, _body: planted_answer(messages[-1]["content"], fair)  # noqa: E731
    with BatchServer(answer=answer, ends=("partly",)) as server:
        model = f"openai:tiny(base_url={server.url},poll_interval=0.01)"
        options = ("--run", "mixed.trec", "--batch", "--limit", "12", *SETTINGS)
        dry = cli("cite", "shop", "--llm", model, *options, "--dry-run", "--price", "100,100")
        assert "at half price, as a batch" in dry.out
        done = cli("cite", "shop", "--llm", model, *options)
        assert done.code in (0, 1), done.err
        assert server.batches
        again = cli("cite", "shop", "--llm", model, *options)
        assert (again.code, len(server.paid)) == (0, 12)
    assert "tiny: 12 of 12 requests answered" in again.err


@pytest.mark.data
@pytest.mark.long
@pytest.mark.neural
def test_local_model_without_citations_is_refused(
    folder: Path, cli: Cli, tmp_path: Path, shared_data: Path
) -> None:
    model = make_stories(shared_data, tmp_path / "stories")
    message = refused_last_line(
        cli,
        "cite",
        "shop",
        "--llm",
        f"transformers:{model}(max_tokens=12)",
        *("--run", "mixed.trec", "--context", "3", "--limit", "2", "--save-answers", "s.jsonl"),
    )
    assert "none of 2 answers cite a document by its number in brackets" in message
    records = [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()]
    assert [record["cited"] for record in records] == [[], []]
    assert all(record["text"] for record in records)


def refused_last_line(cli: Cli, *arguments: str) -> str:
    """Run a command that asks a model and must fail; return its last line."""
    code, out, err = cli(*arguments)
    assert (code, out) == (2, ""), err
    return err.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("cite shop --llm openai:tiny", "--llm answers from what is retrieved: name a run"),
        ("cite a.jsonl --groups g.csv --twins", "--twins needs a model: --llm openai:MODEL"),
        ("cite a.jsonl --groups g.csv --context 5", "--context needs a model: --llm"),
        ("cite a.jsonl --groups g.csv --dry-run", "--dry-run needs a model: --llm"),
        (
            "cite shop --llm openai:tiny --run mixed.trec --queries q.tsv",
            "--queries: a model answers the queries of the collection; omit it",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --twins --context 5",
            "a context of 5 documents cannot hold both versions of each; choose an even number",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --twins --cluster origin",
            "--cluster: errors of twins and labels go by query and document; omit it",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --twins --pair llm,gpt",
            "unknown group 'gpt' (valid: human, llm)",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --twins --by title",
            "twins are versions of different sources, not of title; leave out --by, or --twins",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --prompt nimbered",
            "unknown prompt 'nimbered'; did you mean 'numbered'?",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --cluster owner",
            "unknown column 'owner' (valid: page, origin)",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --pair human,llm --pair human,gpt",
            "unknown group 'gpt' (valid: human, llm)",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --by origin --pair llm,human",
            "unknown group 'llm'",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --engine a",
            "--engine: a model answers the queries of the collection; omit it",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --twins --label-errors llm:fpr=.1,fnr=.1",
            "--label-errors corrects rates and shares of citations; omit it with --twins",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --label-errors llm:fpr=x",
            "fpr",
        ),
        ("cite shop --llm openai:tiny --run gone.trec", "gone.trec: cannot be read"),
        ("cite gone --llm openai:tiny --run mixed.trec", "gone: no such folder"),
        (
            "cite shop --llm openai:tiny --run mixed.trec --price 1,2",
            "--price needs --dry-run",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --show-label false",
            "--show-label",
        ),
        (
            "cite shop --llm openai:tiny --run mixed.trec --save-answers mixed.trec",
            "--save-answers mixed.trec: this file is read too",
        ),
    ],
)
def test_refusals(options: str, message: str, folder: Path, cli: Cli) -> None:
    (folder / "a.jsonl").write_text('{"query_id": "q", "cited": ["a"]}\n', encoding="utf-8")
    (folder / "g.csv").write_text("doc_id,source\na,x\n", encoding="utf-8")
    assert message in refused(cli, *options.split())


@pytest.fixture
def versions_folder(folder: Path, cli: Cli) -> Path:
    """Versions of the shop, short and long, and a run of the documents as they are."""
    docs = []
    for number in range(ORIGINS):
        text = f"Thing {number} is here{' again' * (number % 5)}. They sleep."
        docs.append({"id": f"d{number}", "text": text, "source": "human", "origin": f"d{number}"})
    queries = {f"q{number}": f"thing {number}" for number in range(QUERIES)}
    collection = collection_of(docs, queries, {})
    save(collection, folder / "things")
    scores = {
        f"q{number}": {f"d{(number + step) % ORIGINS}": 9.0 - step for step in range(6)}
        for number in range(QUERIES)
    }
    run_of(collection, scores).save(folder / "things.trec")
    (folder / "shop_edits.py").write_text(EDIT)
    options = ("--factors", "shop_edits:short", "-o", "versions")
    result = cli("generate", "versions", "things", *options)
    assert result.code == 0, result.err
    return folder


EDIT = """
def short(text):
    return text.partition(" They sleep")[0]

short.moves = {"words": -1}
"""
BY_FACTOR = ("--run", "things.trec", "--context", "6", "--repeats", "2", "--by-factor")


def prefers_short_texts(document: Document) -> float:
    """Cite shortened texts more often."""
    return 0.25 if "sleep" in document.text else 0.75


def test_by_factor_agrees_for_saved_answers(versions_folder: Path, cli: Cli) -> None:
    with citing_server(prefers_short_texts) as server:
        model = f"openai:tiny(base_url={server.url})"
        options = (*BY_FACTOR, "--save-answers", "a.jsonl", "--json", "f.json", "-o", "f.html")
        done = cli("cite", "versions", "--llm", model, *options)
        assert len(server.requests) == QUERIES * 2
    assert done.code == 0, done.err
    assert "short=changed makes answers cite a text more often, by " in done.out
    assert "cited, points" in done.out
    assert "Next: See what the same changes do to ranks: ranktilt explain versions" in done.out
    effects = FactorEffects.load(versions_folder / "f.json")
    assert effects.estimands == ("cited", "cited first")
    page = (versions_folder / "f.html").read_text(encoding="utf-8")
    assert "How often a text is cited with each change" in page
    saved = cli("cite", "a.jsonl", "--groups", "versions", "--by-factor")
    assert saved.code == 0, saved.err
    assert saved.out.split("\n")[4].split()[1:] == done.out.split("\n")[4].split()[1:]
    answers = Path("a.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [
        json.dumps({**json.loads(line), "engine": engine})
        for line, engine in product(answers, ("alpha", "beta"))
    ]
    Path("b.jsonl").write_text("\n".join(lines), encoding="utf-8")
    chosen = ("--engine", "beta", "--groups", "versions", "--by-factor")
    engine = cli("cite", "b.jsonl", *chosen)
    assert engine.code == 0, engine.err
    assert engine.out.split("\n")[4].split() == ["beta", *saved.out.split("\n")[4].split()[1:]]
    assert cli("report", "f.json", "-o", "r.html").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "origin"), "--by: --by-factor compares the levels of each factor; omit it"),
        (("--pair", "a,b"), "--pair: --by-factor compares"),
        (("--cluster", "page"), "--cluster: --by-factor compares"),
        (("--margin", "3"), "--margin: --by-factor compares"),
        (("--name", "human=people"), "--name: --by-factor compares"),
        (("--label-errors", "ai:fpr=.1,fnr=.1"), "--label-errors: --by-factor compares"),
        (("--groups", "things"), "--groups: the collection itself has the factors; omit it"),
        (("--twins",), "the effects of factors (--by-factor) go with neither twins nor"),
    ],
)
def test_options_that_factors_do_not_read_are_refused(
    versions_folder: Path, cli: Cli, options: tuple[str, ...], message: str
) -> None:
    with citing_server(fair) as server:
        model = f"openai:tiny(base_url={server.url})"
        refusal = refused(cli, "cite", "versions", "--llm", model, *BY_FACTOR, *options)
        assert refusal.startswith(message)
        assert not server.requests


def test_factors_need_versions(versions_folder: Path, cli: Cli, fair_server: Server) -> None:
    model = f"openai:tiny(base_url={fair_server.url})"
    refusal = refused(cli, "cite", "things", "--llm", model, *BY_FACTOR)
    assert refusal.startswith("--by-factor needs versions by design")
    assert not fair_server.requests
    (versions_folder / "a.jsonl").write_text('{"query_id": "q1", "cited": ["d1"]}\n')
    refusal = refused(cli, "cite", "a.jsonl", "--by-factor")
    assert refusal.endswith("name their collection, --groups DIR")
    options = ("--groups", "things", "--run", "things.trec")
    assert refused(cli, "cite", "a.jsonl", "--by-factor", *options).startswith("--run: --by-factor")
