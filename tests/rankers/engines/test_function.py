"""Any engine through a function: found, called at once with others, and asked over real sockets."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ranktilt import UserError, ranker
from ranktilt.rankers.engines.function import Engine
from tests.rankers.contract import with_queries
from tests.rankers.entries import ids
from tests.toy import toy, write, write_cocktail

Module = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Write a module into the current folder; its name is another each time, because Python keeps modules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    made: list[str] = []

    def make(code: str) -> str:
        made.append(f"engine_{tmp_path.name}_{len(made)}".replace("-", "_"))
        write(tmp_path / f"{made[-1]}.py", code)
        return made[-1]

    return make


WORDS = """
DOCUMENTS = {"d1-human": "red apples grow", "d2-llm": "river water", "d3-llm": "old red clock"}

def search(query, k):
    scored = [(len(set(query.split()) & set(text.split())), name) for name, text in DOCUMENTS.items()]
    return [(name, score) for score, name in sorted(scored, reverse=True) if score][:k]
"""


def test_a_module_of_the_current_folder_is_asked(module: Module) -> None:
    name = module(WORDS)
    made = ranker(f"engine:{name}:search(concurrency=2)@2")
    assert repr(made) == f"engine:{name}:search(concurrency=2)@2"
    assert made == Engine(f"{name}:search", concurrency=2, k=2)
    collection = with_queries(
        {"b": "red apples", "empty": "", "unjudged": "old", "a": "old clock"}, ["a", "b", "empty"]
    )
    run = made.rank(collection)
    assert ids(run) == {"b": ["d1-human", "d3-llm"], "empty": [], "a": ["d3-llm"]}
    assert made.rank(collection) == run
    assert (run.name, run.spec["ranker"], run.spec["function"]["file"]) == (repr(made), repr(made), f"{name}.py")
    assert len(run.spec["function"]["sha256"]) == 64


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def serch(query, k): ...", "AttributeError: module 'MODULE' has no attribute 'search'"),
        ("search = 3", "engine:MODULE:search: expected a function search(query, k), got 3"),
        ("import no_such_client", "ModuleNotFoundError: No module named 'no_such_client'"),
        ("def search(query, k: return", "SyntaxError: "),
    ],
)
def test_a_module_that_cannot_be_used_is_refused(module: Module, code: str, message: str) -> None:
    name = module(code)
    for act in (Engine(f"{name}:search").check, lambda: Engine(f"{name}:search").rank(toy())):
        with pytest.raises(UserError, match=re.escape(message.replace("MODULE", name))):
            act()


def test_the_command_line_ends_though_the_engine_hangs(tmp_path: Path) -> None:
    write_cocktail(tmp_path / "toy")
    hang = "import threading\n\ndef search(query, k):\n    threading.Event().wait() if 'clock' in query else 1 / 0\n"
    write(tmp_path / "mine.py", hang)
    code = "from ranktilt.cli.main import main; main()"
    command = [sys.executable, "-c", code, "audit", "toy", "-r", "engine:mine:search@2", "--save", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "ZeroDivisionError" in done.stderr) == (2, True)
