"""Any engine through a function: found, called at once with others, and asked over real sockets."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ranktilt import Collection, UserError
from ranktilt.rankers.engines.function import Engine
from tests.rankers.contract import Make
from tests.rankers.entries import ids
from tests.rankers.live import LiveContract
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


OVERLAP = """
import json
from pathlib import Path

DOCUMENTS = json.loads(Path(__file__).with_suffix(".json").read_text())

def search(query, k):
    words = set(query.split())
    scored = [(len(words & set(text.split())), text, name) for name, text in DOCUMENTS.items()]
    best = sorted(s for s in ((-score, text, name) for score, text, name in scored) if s[0])
    return [(name, -score) for score, _, name in best[:k]]
"""


class TestEngine(LiveContract):
    """The contract, for a function that counts words."""

    @pytest.fixture
    def make(self, module: Module, tmp_path: Path) -> Make:
        names: dict[object, str] = {}

        def known(collection: Collection, **options: object) -> Engine:
            key = (tuple(collection.ids), tuple(collection.texts()))
            if key not in names:
                names[key] = module(OVERLAP)
                write(tmp_path / f"{names[key]}.json", json.dumps(dict(zip(*key, strict=True))))
            return Engine(f"{names[key]}:search", **options)

        return known


GOOD = "def search(query, k):\n    return [('d1-human', 2.0), ('d2-llm', 1.0)][:k]\n"


def test_a_module_of_the_current_folder_is_asked(module: Module) -> None:
    name = module(GOOD)
    run = Engine(f"{name}:search", k=2).rank(toy())
    assert list(ids(run).values()) == [["d1-human", "d2-llm"]] * 3
    assert run.spec["function"]["file"] == f"{name}.py"
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
