"""What is built: the wheel, at work alone outside the checkout; the documentation site, as wide as
its window.
"""

import email
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import trove_classifiers

from tests.house import tree
from tests.reporting.browser import Browser, Chromium

pytestmark = pytest.mark.long


def run(command: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, away from PYTHONPATH, in a terminal so wide that no line is
    folded.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**env, "COLUMNS": "200", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, tree.ROOT]
    result = run(command, folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel and its base dependencies into an empty environment; return its
    `ranktilt`.
    """
    folder = tmp_path_factory.mktemp("empty")
    process = run([sys.executable, "-m", "venv", "venv"], folder)
    assert process.returncode == 0, process.stderr
    scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    constraints = tree.ROOT / "constraints.txt"
    result = run(
        [scripts / "python", "-m", "pip", "install", "-q", "-c", constraints, wheel], folder
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return scripts / "ranktilt"


@pytest.mark.journey
def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    packaged = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("ranktilt/")}
    files = {
        path
        for path in tree.PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packaged == {path.relative_to(tree.PACKAGE.parent).as_posix() for path in files}
    assert "ranktilt/py.typed" in packaged
    assert wheel.stat().st_size < 3_000_000
    package = "-".join(wheel.name.split("-")[:2])
    facts = email.message_from_bytes(zipfile.ZipFile(wheel).read(f"{package}.dist-info/METADATA"))
    assert set(facts.get_all("Classifier", [])) <= trove_classifiers.classifiers
    assert "source bias" in facts["Keywords"]
    assert facts["Description-Content-Type"] == "text/markdown"
    assert any(
        name.startswith("ranktilt/data/bundled/") and name.endswith(".jsonl") for name in packaged
    )


@pytest.mark.journey
def test_demo_runs_without_extras_and_a_missing_one_is_named_in_one_line(
    installed: Path, tmp_path: Path
) -> None:
    result = run([installed, "demo", "-r", "bm25", "-r", "tfidf"], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Relative" in result.stdout
    result = run([installed, "demo", "-r", "dense:minilm"], tmp_path)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    [line] = [line for line in result.stderr.splitlines() if "pip install" in line]
    assert "ranktilt[" in line


@pytest.mark.journey
def test_a_stranger_gets_a_verdict_on_an_mteb_prediction_file_in_one_command(
    installed: Path, tmp_path: Path
) -> None:
    scores = {
        f"q{n}": {f"d{n}-{side}": 1.0 + (side == "llm") for side in ("human", "llm")}
        for n in range(40)
    }
    predictions = {"mteb_model_meta": {"model_name": "my/model"}, "default": {"test": scores}}
    (tmp_path / "Task_predictions.json").write_text(json.dumps(predictions), encoding="utf-8")
    lines = [f"d{n}-{side}\t{side}\td{n}" for n in range(40) for side in ("human", "llm")]
    (tmp_path / "labels.tsv").write_text(
        "\n".join(["doc_id\tsource\torigin", *lines]), encoding="utf-8"
    )
    result = run(
        [installed, "audit", "--run", "Task_predictions.json", "--groups", "labels.tsv"], tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "my/model favours llm" in result.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*build, tree.ROOT / "docs", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.journey
def test_every_command_and_page_is_in_it(site: Path) -> None:
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    assert "[ranktilt audit](reference/cli/audit.html)" in listed
    assert "[ranktilt data mix](reference/cli/data-mix.html)" in listed
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", listed, re.MULTILINE)
    assert len(links) == sum(line.startswith("- ") for line in listed.splitlines())
    assert [link for link in links if not (site / link).exists()] == []
    in_full = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert "# Glossary" in in_full
    assert "# ranktilt data mix" in in_full


@pytest.mark.journey
def test_no_link_is_broken_and_no_markup_is_left(site: Path) -> None:
    pages = {page.resolve(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    names = {page: set(re.findall(r' id="([^"]+)"', text)) for page, text in pages.items()}
    broken = []
    for page, text in pages.items():
        for link in re.findall(r' (?:href|src)="([^"]+)"', text):
            address = urlsplit(link.replace("&amp;", "&"))
            there = (page.parent / unquote(address.path)).resolve() if address.path else page
            if address.scheme or link == "#":
                continue
            if not there.exists() or (
                address.fragment and unquote(address.fragment) not in names.get(there, ())
            ):
                broken.append(f"{page.relative_to(site)}: {link}")
        prose = re.sub(r"<(pre|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        broken += [
            f"{page.relative_to(site)}: {left}" for left in re.findall(r".{20}`.{20}", prose)
        ]
    assert broken == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Chromium() as chromium, Browser(chromium=chromium) as page:
        yield page


@pytest.mark.parametrize("words", ["tie", "exposure ratio", "mteb"])
def test_search_finds(site: Path, browser: Browser, words: str) -> None:
    browser.do(lambda page: page.goto(f"{(site / 'search.html').as_uri()}?q={words}"))
    browser.until("document.querySelector('ul.search li a')")
    hits = browser.run(
        "[...document.querySelectorAll('ul.search li')].map(hit => hit.textContent.toLowerCase())"
    )
    assert any(words in hit for hit in hits)


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(site: Path, browser: Browser, width: int) -> None:
    browser.size(width)
    for name in ("index", "faq", "glossary", "audit", "python", "reading-the-card", "ndcg"):
        page = next(site.rglob(f"{name}.html"))
        browser.do(lambda tab, page=page: tab.goto(page.as_uri()))
        assert browser.overflow == 0, name
