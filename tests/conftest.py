"""Fixtures and settings that every test shares."""

import os

os.environ["HF_HUB_OFFLINE"] = (
    "1"  # before anything imports transformers: no test may reach the network
)
# The models here are tiny: a second thread makes their training take three times the processor
# time, mostly waiting.
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
os.environ["OPENBLAS_NUM_THREADS"] = os.environ.get("OPENBLAS_NUM_THREADS", "1")

import gc
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]

# What is printed depends on the terminal around it: here there is none, unless a test makes one.
for _name in (
    "FORCE_COLOR",
    "NO_COLOR",
    "COLORTERM",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "COLUMNS",
    "LINES",
):
    os.environ.pop(_name, None)

# The first call of a compiled kernel takes seconds, which says nothing about the property under
# test. In CI the examples are the same each time; chance finds are for those who can look into
# them.
hypothesis.settings.register_profile(
    "ranktilt", deadline=None, derandomize=bool(os.environ.get("CI"))
)
hypothesis.settings.load_profile("ranktilt")

LONGEST = ("test_minilm.py", "test_benchmarks.py", "test_docs.py")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage while tests are collected: what is imported stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, so that no worker is left alone with one at the end."""
    long = {test.path for test in items if test.get_closest_marker("long")}
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda test: (order.get(test.path.name, len(order)), test.path not in long))


_imported = 0


def pytest_runtest_call() -> None:
    """Leave what is imported out of later searches for garbage: each training makes three, half a
    second each.
    """
    global _imported
    if len(sys.modules) > _imported:
        gc.collect()
        gc.freeze()
        _imported = len(sys.modules)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point RankTilt's cache to a folder of this session, or to RANKTILT_TEST_CACHE to keep it."""
    chosen = os.environ.get("RANKTILT_TEST_CACHE")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKTILT_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of shared data sets; skip where it is absent."""
    folder = Path(os.environ.get("RANKTILT_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(
            f"needs the shared data folder: {folder} is absent; RANKTILT_TEST_DATA names another"
        )
    return folder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RANKTILT_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder's folder; its vectors are compared by cosine, as nothing says otherwise."""
    from tests.rankers.tiny import tiny_model

    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def stories(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the small model of stories."""
    from tests.llm.stories import make_stories

    return make_stories(shared_data, tmp_path_factory.mktemp("stories") / "stories")
