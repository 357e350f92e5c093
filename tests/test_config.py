"""The configuration file: what is read, what it may not hold, and whose it may be."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from ranktilt.config import find_configuration, read_configuration
from ranktilt.errors import UserError

FILE = """
[llm.judge]
model = "openai:gpt-x"
temperature = 0
base_url = "http://localhost:8000/v1"

[labels.team]
file = "labels.csv"
columns = {id = "url", source = "is_ai"}
names = {1 = "ai"}

[machine]
threads = 2

[statistics]
resamples = 500
margin = "0.5 ranks"

[check]
max_missing = 3
"""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    name: str
    text: str
    message: str


REFUSALS = [
    Refusal(
        name="unknown section",
        text="[statistic]\nseed = 1",
        message="unknown section in FILE 'statistic'; did you mean 'statistics'?",
    ),
    Refusal(
        name="unknown key",
        text="[statistics]\nresample = 1",
        message="unknown key of FILE: [statistics] 'resample'; did you mean 'resamples'?",
    ),
    Refusal(
        name="wrong type",
        text='[machine]\nthreads = "two"',
        message="[machine] threads: expected a whole number, got a text",
    ),
    Refusal(
        name="out of range",
        text="[statistics]\nresamples = 5",
        message="[statistics] resamples: expected a whole number >= 100",
    ),
    Refusal(name="no section", text="llm = 3", message="expected a section [llm], got llm = 3"),
    Refusal(
        name="no model",
        text="[llm.judge]\ntemperature = 0",
        message='[llm.judge] needs a model, such as model = "openai:MODEL"',
    ),
    Refusal(
        name="a key by its name",
        text='[llm.judge]\nmodel = "openai:m"\napi_key = "x"',
        message="llm.judge.api_key looks like a secret: set keys in the environment",
    ),
    Refusal(
        name="a key by its value",
        text='[llm.judge]\nmodel = "sk-abcdefghijklmnop"',
        message="llm.judge.model looks like a secret: set keys in the environment",
    ),
    Refusal(
        name="a long random value",
        text='[labels.team]\nfile = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0"',
        message="labels.team.file looks like a secret",
    ),
    Refusal(
        name="a long random value with hyphens",
        text='[labels.team]\nfile = "aB3dE6gH-9jK2mN5pQ-8sT1vW4yZ7bC0"',
        message="labels.team.file looks like a secret",
    ),
    Refusal(
        name="a password in an address",
        text='[llm.judge]\nmodel = "openai:m"\nbase_url = "http://me:pw@host/v1"',
        message="llm.judge.base_url looks like a secret",
    ),
    Refusal(
        name="an engine",
        text='[llm.judge]\nmodel = "engine:my.module:search"',
        message="llm.judge.model names code, which a configuration file may not",
    ),
    Refusal(
        name="code",
        text='[machine]\nexecutor = "my.module:run"',
        message="machine.executor names code",
    ),
    Refusal(
        name="a key with a blank",
        text='[llm.judge]\nmodel = "openai:m"\n" base_url" = "http://h/v1"',
        message="expected a key of letters, digits and _",
    ),
    Refusal(
        name="a key inside a model's text",
        text='[llm.judge]\nmodel = "openai:m(api_key=abcdefgh1)"',
        message="llm.judge.model looks like a secret",
    ),
    Refusal(
        name="a key in an address",
        text='[llm.judge]\nmodel = "openai:m"\nbase_url = "http://h/v1?api_key=abcdefgh1"',
        message="llm.judge.base_url looks like a secret",
    ),
    Refusal(
        name="keys of other names",
        text='[llm.judge]\nmodel = "openai:m"\nOPENAI_API_KEY = "abcdefgh1"',
        message="llm.judge.OPENAI_API_KEY looks like a secret",
    ),
    Refusal(
        name="a header",
        text='[llm.judge]\nmodel = "openai:m"\nheaders = {Authorization = "abcdefgh1"}',
        message="llm.judge.headers.Authorization looks like a secret",
    ),
    Refusal(
        name="a cluster",
        text='[machine]\nexecutor = "ray:10.0.0.1:6379"',
        message="machine.executor names a cluster",
    ),
    Refusal(
        name="a word that is no choice",
        text='[statistics]\ncorrection = "Holm"',
        message="correction 'Holm'; did you mean 'holm'? (valid: holm, bonferroni)",
    ),
    Refusal(
        name="a name that cannot be typed",
        text='[llm."my judge"]\nmodel = "openai:m"',
        message="'my judge' cannot be typed as a name",
    ),
    Refusal(
        name="a seed that no file holds",
        text="[statistics]\nseed = 18446744073709551616",
        message="[statistics] seed",
    ),
    Refusal(name="nested without end", text="a = " + "[" * 3000, message="cannot be read"),
    Refusal(name="no TOML", text="[statistics", message="cannot be read: "),
]


def written(folder: Path, text: str = FILE, name: str = "ranktilt.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path


def test_sections_are_read_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    configuration = read_configuration(written(tmp_path))
    assert configuration.llm["judge"]["model"] == "openai:gpt-x"
    labels = configuration.labels["team"]
    assert labels.file == str(tmp_path / "labels.csv")
    assert (labels.columns["source"], labels.names["1"]) == ("is_ai", "ai")
    assert configuration.machine.threads == 2
    assert (configuration.statistics.resamples, configuration.statistics.seed) == (500, 0)
    assert configuration.check["max_missing"] == 3
    assert "statistics.margin" in configuration.set_keys


def test_assignments_win_over_the_file_and_are_read_as_numbers(tmp_path: Path) -> None:
    configuration = read_configuration(written(tmp_path), {"statistics.resamples": "300"})
    assert configuration.statistics.resamples == 300
    assert configuration.statistics.margin == "0.5 ranks"
    assert read_configuration(None, {"statistics.seed": "7"}).statistics.seed == 7
    with pytest.raises(UserError, match="--set llm\\.judge: expected a key of"):
        read_configuration(None, {"llm.judge": "openai:m"})


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_a_file_is_refused_with_its_name_and_key(tmp_path: Path, refusal: Refusal) -> None:
    path = written(tmp_path, refusal.text)
    with pytest.raises(UserError) as error:
        read_configuration(path)
    message = str(error.value)
    assert str(path) in message
    assert refusal.message.replace("FILE", str(path)) in message
    assert "pw@" not in message
    assert "abcdefgh" not in message, "a secret is not shown"


def test_the_nearest_file_counts_and_two_in_a_folder_are_refused(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    assert find_configuration(inner) is None
    outer = written(tmp_path)
    assert find_configuration(inner) == outer
    nearest = written(inner.parent, "[tool.ranktilt.statistics]\nseed = 4\n", "pyproject.toml")
    assert find_configuration(inner) == nearest
    assert read_configuration(nearest).statistics.seed == 4
    written(inner, "[project]\nname = 'other'\n", "pyproject.toml")
    assert find_configuration(inner) == nearest, "a project without our section is passed by"
    written(inner.parent)
    with pytest.raises(UserError, match="both set the configuration"):
        find_configuration(inner)


def test_words_of_the_data_are_no_keys(tmp_path: Path) -> None:
    text = (
        "[labels.team]\nfile = 'HumanLabels2024Version12FinalReview.csv'\nnames = {token = 'ai'}\n"
    )
    assert read_configuration(written(tmp_path, text)).labels["team"].names == {"token": "ai"}


@pytest.mark.parametrize(
    "model",
    [
        "openai:meta-llama/Meta-Llama-3.1-405B-Instruct-FP8",
        "openai:Qwen/Qwen2.5-0.5B-Instruct-GPTQ-Int4",
        "openai:mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        "models/hf-beir-tuned",
    ],
)
def test_a_models_name_is_no_secret(tmp_path: Path, model: str) -> None:
    configuration = read_configuration(written(tmp_path, f'[llm.judge]\nmodel = "{model}"'))
    assert configuration.llm["judge"]["model"] == model


@pytest.mark.parametrize(
    "text",
    [
        "[tool.ranktilt-plugin]\nx = 1\n",
        "# [tool.ranktilt]\n[project]\nname = 'x'\n",
        "tool = 5\n",
        "[project\n",
    ],
)
def test_a_project_without_our_section_is_passed_by(tmp_path: Path, text: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    configuration = written(tmp_path)
    written(inner, text, "pyproject.toml")
    assert find_configuration(inner) == configuration


@pytest.mark.parametrize(
    "text",
    [
        "[tool]\nranktilt = {statistics = {seed = 3}}\n",
        "[ tool . ranktilt . statistics ]\nseed = 3\n",
    ],
)
def test_our_section_may_be_written_in_any_way(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text, "pyproject.toml")
    assert find_configuration(tmp_path) == path
    assert read_configuration(path).statistics.seed == 3


@pytest.mark.skipif(os.name != "posix", reason="there are no pipes elsewhere")
def test_what_is_no_file_is_refused_or_passed_by(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    assert find_configuration(tmp_path) is None, "a pipe is not opened"
    (tmp_path / "ranktilt.toml").mkdir()
    with pytest.raises(UserError, match="expected a configuration file"):
        find_configuration(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="owners and permissions are others elsewhere")
def test_a_file_of_another_user_or_that_everybody_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    path.chmod(0o646)
    with pytest.raises(UserError, match="everybody may write it"):
        read_configuration(path)
    path.chmod(0o644)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(UserError, match="belongs to another user"):
        read_configuration(path)
