"""Optional packages: imported, or the pip command; their own faults come through."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktilt.errors import MissingExtra
from ranktilt.optional import may_fetch, need, nothing_fetched


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that Python imports from; what was imported there is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_installed_module_is_returned_a_submodule_itself() -> None:
    assert need("json", extra="none", for_="This") is json
    assert need("importlib.metadata", extra="none", for_="This") is sys.modules["importlib.metadata"]


@pytest.mark.parametrize("module", ["ranktilt_absent", "ranktilt_absent.deep.inside"])
def test_a_missing_package_says_the_pip_command(module: str) -> None:
    with pytest.raises(MissingExtra) as caught:
        need(module, extra="neural", for_="dense:minilm")
    assert str(caught.value) == ('dense:minilm needs ranktilt_absent. Install it with: pip install "ranktilt[neural]"')
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_what_fails_inside_an_installed_package_comes_through(packages: Path) -> None:
    (packages / "ranktilt_broken.py").write_text("import ranktilt_absent_too\n")
    (packages / "ranktilt_failing.py").write_text("raise RuntimeError('driver too old')\n")
    with pytest.raises(ModuleNotFoundError, match="ranktilt_absent_too"):
        need("ranktilt_broken", extra="neural", for_="This")
    with pytest.raises(RuntimeError, match="driver too old"):
        need("ranktilt_failing", extra="neural", for_="This")


def test_nothing_is_fetched_only_while_it_is_asked_for() -> None:
    assert may_fetch()
    with nothing_fetched():
        assert not may_fetch()
        with nothing_fetched():
            pass
        assert not may_fetch()
    assert may_fetch()
