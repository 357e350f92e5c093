"""Options of the machine, --set and ranktilt.toml: what is in force for a command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranktilt.cli.build import _BuilderForm
from ranktilt.cli.settings import MachineOptions, in_force
from ranktilt.cli.train.arguments import typed_options
from ranktilt.errors import UserError
from tests.cli.conftest import Cli, refused
from tests.llm.server import Server

BM25 = ("-r", "bm25", "-m", "nDCG@3")


@pytest.fixture
def here(tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the toy collection in it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "toy").symlink_to(toy_folder)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def configure(folder: Path, text: str) -> Path:
    path = folder / "ranktilt.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path


def spec_of(cli: Cli, *words: str) -> dict[str, object]:
    code, out, err = cli("audit", "toy", *BM25, *words, "--json", "-")
    assert code == 0, err
    spec: dict[str, object] = json.loads(out)["spec"]
    return spec


@pytest.mark.usefixtures("here")
def test_options_of_the_machine_stand_before_or_after_the_verb(cli: Cli) -> None:
    before = cli("--quiet", "--threads", "1", "audit", "toy", *BM25)
    after = cli("audit", "toy", *BM25, "--threads", "1", "--quiet")
    assert before.code == after.code == 0
    assert (before.out, before.err) == (after.out, "")
    assert "--threads" in cli("--help").out
    assert "--threads" not in cli("audit", "--help-all").out


def test_set_wins_over_the_file_and_the_file_over_the_default(cli: Cli, here: Path) -> None:
    configure(here.parent, "[statistics]\nresamples = 300\nseed = 5\nmargin = '7'\n")
    spec = spec_of(cli)
    assert (spec["resamples"], spec["seed"], spec["margin"]) == (300, 5, 7)
    spec = spec_of(cli, "--set", "statistics.seed=6", "--margin", "2")
    assert (spec["resamples"], spec["seed"], spec["margin"]) == (300, 6, 2)


def test_an_option_wins_over_a_preset_which_wins_over_the_file(cli: Cli, here: Path) -> None:
    configure(here, "[statistics]\nresamples = 200\nties = 'expected'\nrounding = 'none'\n")
    assert spec_of(cli, "--preset", "dai")["rounding"] == "paper"
    assert (
        spec_of(cli, "--preset", "dai", "--set", "statistics.rounding=none")["rounding"] == "none"
    )
    assert spec_of(cli, "--preset", "dai", "--ties", "expected")["ties"] == "expected"
    out = cli("audit", "toy", *BM25, "--preset", "dai").out
    assert "Computed by the preset dai, except for measures, which you chose." in " ".join(
        out.split()
    )
    out = cli("audit", "toy", *BM25, "--preset", "dai", "--ties", "expected").out
    assert (
        "Computed by the preset dai, except for ties = expected, measures, which you chose."
        in " ".join(out.split())
    )


def test_wrong_assignments_are_refused(cli: Cli) -> None:
    for text, message in (
        ("seed", "--set expects KEY=VALUE, such as statistics.seed=1; got 'seed'"),
        ("seed=1", "--set seed: expected a section too, such as statistics.seed"),
        ("statistics.sed=1", "unknown key of [statistics] 'sed'; did you mean 'seed'?"),
    ):
        assert message in refused(cli, "audit", "toy", *BM25, "--set", text)
    twice = ("--set", "statistics.seed=1", "--set", "statistics.seed=2")
    assert refused(cli, "audit", "toy", *BM25, *twice).endswith("is given twice: keep one of them")


def test_labels_by_name_and_a_file_of_that_name_wins(cli: Cli, here: Path) -> None:
    rows = "url,is_ai\nd1,0\nd2,1\nd3,1\nd4,0\n"
    (here.parent / "labels.csv").write_text(rows, encoding="utf-8")
    run = "".join(f"q1 Q0 d{rank} {rank} {9 - rank} run\n" for rank in range(1, 5))
    (here / "run.trec").write_text(run, encoding="utf-8")
    configure(
        here.parent,
        "[labels.'team.csv']\nfile = 'labels.csv'\ncolumns = {id = 'url', source = 'is_ai'}\n"
        "names = {0 = 'human', 1 = 'ai'}\n",
    )
    code, out, err = cli("audit", "--run", "run.trec", "--groups", "team.csv", "-m", "Share@2")
    assert code == 0, err
    assert "human" in out
    assert "ai" in out
    (here / "team.csv").write_text("doc_id,source\nd1,man\nd2,machine\nd3,man\nd4,man\n", "utf-8")
    code, out, err = cli("audit", "--run", "run.trec", "--groups", "team.csv", "-m", "Share@2")
    assert "machine" in out
    assert "using the file, not [labels.team.csv]" in err


def test_an_address_of_a_file_is_said_before_anything_is_asked(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-environment")
    with Server() as server:
        path = configure(here, f'[llm.near]\nmodel = "openai:tiny"\nbase_url = "{server.url}"\n')
        words = ("rank", "toy", "-r", "bm25@2", "-o", "run.trec")
        assert cli(*words).code == 0
        code, _, err = cli("generate", "rewrite", "toy", "--llm", "near", "-o", "new", "--quiet")
        first = err.splitlines()[0]
        assert first == (
            f"asks {server.url}, with the key in OPENAI_API_KEY (base_url of [llm.near] in {path})"
        )
        assert code in (0, 1)
        assert server.requests
    refusal = refused(cli, "generate", "rewrite", "toy", "--llm", "nearr", "-o", "newer")
    assert "unknown language model 'nearr'; did you mean 'near'?" in refusal


def test_model_entry_takes_options_of_text_and_command(cli: Cli, here: Path) -> None:
    configure(
        here,
        "[llm.near]\nmodel = 'openai:tiny(concurrency=2)'\ntemperature = 0.5\n"
        "[llm.far]\nmodel = 'openai:tiny >> openai:other'\n"
        "[llm.twice]\nmodel = 'openai:tiny(seed=1)'\nseed = 2\n",
    )
    rewrite = ("generate", "rewrite", "toy", "--dry-run", "--json", "-", "--llm")
    assert cli(*rewrite, "near").code == 0
    assert cli(*rewrite, "near(temperature=0)").code == 0
    assert cli(*rewrite, "near", "--temperature", "0.1").code == 0, "an option wins over the file"
    refusal = refused(cli, *rewrite, "near(temperature=0)", "--temperature", "0.1")
    assert "keep one of them" in refusal
    for text, message in (
        ("near>>bm25", "expected a name of"),
        ("near@3", "expected a name of"),
        ("near:x", "expected a name of"),
        ("far", "[llm.far]: expected one language model"),
        ("twice", "[llm.twice]: seed is given twice"),
    ):
        assert message in refused(cli, *rewrite, text)


def test_keys_that_a_command_does_not_read_are_refused(cli: Cli) -> None:
    for words, message in (
        (("gate", "a.json", "--set", "check.max_missing=1"), "does not read it; audit, check do"),
        (("rank", "toy", "--set", "statistics.seed=1"), "does not read it"),
        (("audit", "toy", "--set", "check.equivalence=1"), "does not read it; check does"),
        (("check", "toy", "--set", "statistics.resamples=200"), "does not read it; audit, cite,"),
        (("cite", "a.jsonl", "--set", "statistics.margin=3"), "does not read it; audit, mitigate"),
        (("explain", "toy", "--set", "statistics.test=t"), "does not read it; audit, mitigate"),
        (("gate", "a.json", "--set", "statistics.correction=holm"), "does not read it; audit,"),
        (("train", "lora", "toy", "--set", "statistics.seed=1"), "ranktilt train lora does not"),
        (("train", "retriever", "toy", "--set", "statistics.missing=zero"), "does not read it"),
        (("tools", "replay-log", "log", "--set", "statistics.ties=expected"), "does not read it"),
        (("audit", "toy", "--set", "mitigate.always=true"), "does not read it; mitigate do"),
        (("gate", "a.json", "--executor", "ray"), "computes nothing that could run elsewhere"),
        (("audit", "toy", "--set", "statistics.seed="), "expected a value"),
        (("audit", "toy", "--set", "statistics.ties=null"), "expected a value"),
        (("audit", "toy", "--threads", "1.5"), "expected a whole number, got 1.5"),
        (("audit", "toy", *BM25, "--memory", "9" * 30 + "TB", "--by", "x"), ""),
        (("mitigate", "toy", "-r", "bm25", "--set", "statistics.missing=exclude"), "mitigate does"),
        (("audit", "toy", "--run", "."), ""),
        (("gate", "."), ""),
    ):
        assert message in refused(cli, *words)


def test_a_closed_stream_is_no_verdict(process: Cli) -> None:
    code = "import os, sys; sys.stderr = None; from ranktilt.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "gate", "nothing.json"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert process("--help", env={"COLUMNS": "0"}).code == 0


def test_a_file_that_is_refused_stops_every_command_but_help(cli: Cli, here: Path) -> None:
    path = configure(here, "[statistics]\nsed = 1\n")
    assert str(path) in refused(cli, "audit", "toy", *BM25)
    assert cli("audit", "--help").code == 0


@pytest.mark.skipif(os.name != "posix", reason="permissions are others elsewhere")
def test_a_file_that_everybody_may_write_is_refused(cli: Cli, here: Path) -> None:
    configure(here, "[statistics]\nseed = 1\n").chmod(0o666)
    assert "everybody may write it" in refused(cli, "audit", "toy", *BM25)


def test_help_spec_lists_options_and_defaults(cli: Cli) -> None:
    code, out, _ = cli("--help-spec", "bm25")
    assert code == 0
    assert "bm25(option=value,…)@k: a ranker" in out
    assert "k1" in out
    for name, word in (
        ("openai", "requests_per_minute"),
        ("nDCG", "It has no options."),
        ("AP", "rel"),
        ("perplexity", "every"),
    ):
        assert word in cli("--help-spec", name).out
    assert "did you mean 'bm25'?" in refused(cli, "--help-spec", "bm26")


def test_builder_parameter_may_not_shadow_a_common_option() -> None:
    def crowded(*, device: str = "x") -> None:
        """Build.

        Parameters
        ----------
        device : str
            What.
        """

    with pytest.raises(UserError, match="--device is an option of every command"):
        _BuilderForm.from_function("crowded", crowded)


def test_a_training_sees_the_gpu_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with in_force(MachineOptions(device="cuda:1"), ("train", "retriever")):
        assert typed_options()["device"] == "cuda"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    with in_force(MachineOptions(device="cpu"), ("train", "retriever")):
        assert typed_options()["device"] == "cpu"
