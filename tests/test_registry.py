"""Text to ranker and back; rankers of other packages; the package's public names."""

import sys
from pathlib import Path
from typing import Any

import pytest

import ranktilt
from ranktilt import UserError, ranker
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.registry import RANKERS, foreign_rankers, ranker_class, ranker_names
from tests.toy import toy


@pytest.mark.parametrize("name", RANKERS)
def test_the_table_of_names_is_true(name: str) -> None:
    assert ranker_class(name).name == name


PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt.rankers.base import FirstStage


@dataclass(frozen=True, kw_only=True)
class Length(FirstStage):
    name: ClassVar[str] = "length"
    sign: float = 1.0

    def candidates(self, collection, slack):
        scores = self.sign * collection.docs["text"].str.len_chars().to_numpy().astype(np.float64)
        for _ in range(collection.judged.height):
            yield np.arange(len(scores)), scores
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a package of one ranker, as pip would leave it; entry points as given."""

    def install(*points: str) -> None:
        (tmp_path / "ranktilt_length.py").write_text(PLUGIN)
        info = tmp_path / "ranktilt_length-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ranktilt-length\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join(["[ranktilt.rankers]", *points, ""]))
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    sys.modules.pop("ranktilt_length", None)


def test_a_ranker_of_another_package_is_found(plugin: Any) -> None:
    plugin("length = ranktilt_length:Length")
    one = ranker("length(sign=-1)@2")
    assert repr(one) == "length(sign=-1.0)@2"
    assert ranker(repr(one)) == one
    found = one.rank(toy()).frame()
    assert found["doc_id"].to_list() == ["d1-human", "d3-llm"] * 3


def test_names_of_other_packages_are_listed_after_ours(plugin: Any) -> None:
    plugin("zeta = ranktilt_length:Length", "alpha = ranktilt_length:Length", "bm25 = ranktilt_length:Length")
    assert ranker_names() == [*RANKERS, "alpha", "zeta"]
    with pytest.raises(UserError, match="did you mean 'alpha'"):
        ranker("alfa")


def test_our_names_cannot_be_taken(plugin: Any) -> None:
    plugin("bm25 = ranktilt_length:Length")
    assert ranker("bm25") == BM25()


WRONG = """
from dataclasses import dataclass

from ranktilt.rankers.base import Ranker


class Stranger:
    pass


def function(collection):
    pass


@dataclass(frozen=True)
class Idle(Ranker):
    name = "odd"


class Plain(Ranker):
    name = "odd"

    def rank(self, collection, run=None):
        pass


@dataclass(frozen=True)
class Renamed(Plain):
    name = "even"


@dataclass(frozen=True)
class Nameless(Ranker):
    def rank(self, collection, run=None):
        pass


@dataclass(frozen=True)
class Needy(Plain):
    host: str
    port: int
    depth: int = 1


@dataclass(frozen=True)
class Shallow(Plain):
    depth: int = 1


@dataclass(frozen=True)
class Named(Plain):
    argument = "index"
    index: str
"""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a package that announces something as the ranker odd."""

    def install(value: str, code: str = WRONG, *, module: str = "odd_ranker") -> None:
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{module}-2.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 2.1\n")
        (info / "entry_points.txt").write_text(f"[ranktilt.rankers]\nodd = {value}\n")
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    for module in ("odd_ranker", "other_ranker"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("Stranger", "is no subclass of ranktilt's Ranker"),
        ("function", "is no subclass of ranktilt's Ranker"),
        ("Idle", "does not implement rank"),
        ("Plain", "is no dataclass; put @dataclass(frozen=True) above it"),
        ("Renamed", "calls itself 'even'; its name and its entry point's must be one"),
        ("Nameless", "calls itself None; its name and its entry point's must be one"),
        ("Needy", "needs a default for host and port: options may be left out"),
        ("Absent", "cannot be imported: AttributeError: module 'odd_ranker' has no attribute 'Absent'"),
    ],
)
def test_what_is_no_ranker_is_refused(odd: Any, value: str, fault: str) -> None:
    odd(f"odd_ranker:{value}")
    with pytest.raises(UserError) as caught:
        ranker("odd")
    assert str(caught.value) == f"ranker 'odd' of odd_ranker 2.1 (odd_ranker:{value}) {fault}"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import nobody_has_this", "ModuleNotFoundError: No module named 'nobody_has_this'"),
        ("raise RuntimeError('no licence\\nsecond line')", "RuntimeError: no licence"),
        ("raise KeyError", "KeyError"),
        ("def broken(:", "SyntaxError: invalid syntax (odd_ranker.py, line 1)"),
    ],
)
def test_a_package_that_fails_to_import_says_why_in_one_line(odd: Any, code: str, reason: str) -> None:
    odd("odd_ranker:Odd", code)
    with pytest.raises(UserError) as caught:
        ranker("bm25>>odd")
    message = f"ranker 'odd' of odd_ranker 2.1 (odd_ranker:Odd) cannot be imported: {reason}"
    assert str(caught.value) == message
    assert caught.value.__cause__ is not None


def test_two_packages_of_one_ranker_are_refused(odd: Any) -> None:
    odd("odd_ranker:Shallow")
    odd("other_ranker:Shallow", module="other_ranker")
    with pytest.raises(UserError) as caught:
        ranker("odd")
    assert (
        str(caught.value) == "ranker 'odd' is announced by odd_ranker 2.1 and other_ranker 2.1; uninstall all but one"
    )


def test_a_depth_is_refused_where_there_is_none(odd: Any) -> None:
    odd("odd_ranker:Shallow")
    assert repr(ranker("odd(depth=3)")) == "odd(depth=3)"
    with pytest.raises(UserError, match=r"^odd takes no depth, got @5$"):
        ranker("odd@5")


def test_an_argument_needs_no_default(odd: Any) -> None:
    odd("odd_ranker:Named")
    assert repr(ranker("odd:my.index")) == "odd:my.index"


def test_other_packages_rankers_are_listed_without_importing_them(odd: Any) -> None:
    odd("odd_ranker:Odd", "raise RuntimeError")
    assert foreign_rankers() == [("odd", "odd_ranker 2.1")]
    assert "odd_ranker" not in sys.modules


@pytest.mark.parametrize("name", ranktilt.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(ranktilt, name) is not None
    assert name in dir(ranktilt)


def test_another_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'ranktilt' has no attribute 'rank'$"):
        _ = ranktilt.rank  # type: ignore[attr-defined]
