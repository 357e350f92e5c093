"""A Ray cluster of two nodes on this machine: the same results to the last bit, also when workers
and nodes die.
"""

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, ranker
from ranktilt.errors import DataWarning, UserError
from ranktilt.llm.base import Prompt, Sampling
from ranktilt.llm.journal import Journal, Request, journalled
from ranktilt.llm.openai import OpenAI
from ranktilt.models.likelihood import Likelihood
from ranktilt.parallel.executor import executor
from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory, memory_limit, processors
from ranktilt.parallel.run_on import run_on
from ranktilt.rankers.dense import search
from ranktilt.rankers.lexical import bm25, index
from tests.llm.server import Faults, Server
from tests.rankers.tiny import language_model
from tests.rankers.tiny_rerankers import tiny_classifier
from tests.refusals import refused

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::ResourceWarning")]

WORDS = ["river", "stone", "lake", "cloud", "ember", "moss", "pine", "dusk", "fern", "gale"]
Both = Callable[[Callable[[], Any]], list[Any]]


# Stages that workers do, each of which says who does what in a folder that all share


@dataclass(frozen=True)
class Squares:
    """Squares numbers; `folder` gets an empty file PID-NUMBER before each of them."""

    folder: Path
    seconds: float = 0.0

    def __call__(self, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            (self.folder / f"{os.getpid()}-{number}").touch()
            time.sleep(self.seconds)
            if number < 0:
                raise UserError(f"no root of {number}")
            yield number * number

    def done_by(self) -> list[tuple[int, int]]:
        """Process and number of each that was begun."""
        return sorted(
            (int(pid), int(number))
            for pid, number in (f.name.split("-") for f in self.folder.iterdir())
        )


def failing(numbers: Iterator[int]) -> Iterator[int]:
    """Warn at 1, refuse 3, and divide by 0 at 5."""
    for number in numbers:
        if number == 1:
            warnings.warn("one is odd", DataWarning, stacklevel=2)
        if number == 3:
            raise UserError("three is too many")
        yield 1 // (5 - number)


def memory_of_a_worker(numbers: Iterator[int]) -> Iterator[int]:
    for _ in numbers:
        yield memory_limit()


def deadly(numbers: Iterator[int]) -> Iterator[int]:
    for number in numbers:
        os.kill(os.getpid(), 9)
        yield number


# The cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a head and another node of one processor each; both have done something: starting
    takes seconds.
    """
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        from ray.cluster_utils import Cluster

        nodes = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        stack.callback(nodes.shutdown)
        nodes.add_node(num_cpus=1)
        stack.enter_context(run_on(f"ray:{nodes.address}"))
        assert executor().workers == 2
        squares = Squares(tmp_path_factory.mktemp("first"), 0.5)
        for _ in range(20):
            list(executor().map(squares, range(4)))
            if len({pid for pid, _ in squares.done_by()}) == 2:
                break
        yield nodes.address


@pytest.fixture(scope="module")
def docs() -> Collection:
    """Documents of a few words, some alike, and judged queries."""
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(WORDS, size=random.integers(1, 9))) for _ in range(300)]
    table = pl.DataFrame({"id": [f"d{i}" for i in range(300)], "text": texts})
    queries = pl.DataFrame({"id": [f"q{i}" for i in range(20)], "text": texts[::15]})
    qrels = pl.DataFrame({"query_id": queries["id"], "doc_id": table["id"][::15], "grade": 1})
    return Collection(table, queries, qrels)


@pytest.fixture
def here_and_there(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Do something in this process and on the cluster, each with a cache of its own, in many small
    parts.
    """
    for module, name, value in (
        (search, "_PART", 1 << 11),
        (index, "CHUNK", 40),
        (bm25, "_QUERIES_A_PART", 3),
    ):
        monkeypatch.setattr(module, name, value)

    def both(work: Callable[[], Any]) -> list[Any]:
        monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "local"))
        with run_on("local"):
            here = work()
        monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cluster"))
        return [here, work()]

    return both


@pytest.mark.parametrize(
    "spec",
    [
        "bm25@20",
        "tfidf@5",
        "bm25(analyzer=whitespace,text=text)@300",
        "dense@7",
        "dense@300",
        "cross-encoder",
    ],
)
def test_rankers_equal_those_of_one_machine(
    here_and_there: Both, docs: Collection, tiny: Path, tmp_path: Path, spec: str
) -> None:
    if spec == "cross-encoder":
        spec = f"bm25@20>>cross-encoder:{tiny_classifier(tmp_path / 'model')}"
    spec = spec.replace("dense", f"dense:{tiny}")
    here, there = here_and_there(
        lambda: ranker(spec).rank(replace(docs)).frame()
    )  # of which nothing is known yet
    assert here.equals(there)


def test_perplexities_equal_those_of_one_machine(
    here_and_there: Both, docs: Collection, tmp_path: Path
) -> None:
    folder, texts = language_model("causal", tmp_path / "model"), docs.docs["text"].to_list()
    here, there = here_and_there(lambda: Likelihood(folder=folder).score(texts, label="x"))
    np.testing.assert_array_equal(here.perplexity, there.perplexity)
    np.testing.assert_array_equal(here.tokens, there.tokens)


def test_each_prompt_is_answered_once_and_written_by_this_process_alone(
    cluster: str, tmp_path: Path
) -> None:
    prompts = [Request(prompt=Prompt(text=f"{WORDS[n % 10]} {n}")) for n in range(100)]
    with Server(delay=0.03, faults=Faults(seed=3, share=0.2, kinds=["500", "drop"])) as server:
        model = OpenAI("tiny", base_url=server.url, concurrency=3, retries=30)
        journal = Journal(tmp_path / "journal", about=model.spec)

        def answers() -> dict[int, str]:
            replies = journalled(model, prompts, journal, sampling=Sampling(seed=1))
            return {
                reply.number: reply.answer.text for reply in replies if reply.answer is not None
            }

        first = answers()
        assert sorted(first) == list(range(100))
        assert server.peak > 3  # two workers, three at once each
        with run_on("local"):
            assert answers() == first
        assert len(server.answered) == 100


def test_what_a_worker_says_is_said_here(cluster: str) -> None:
    with pytest.warns(DataWarning, match="one is odd"):
        assert list(executor().map(failing, range(3), at_once=3)) == [0, 0, 0]
    results = executor().map(failing, [2, 3], at_once=2)
    assert next(results) == 0  # what was made before is kept
    with refused("three is too many"):
        next(results)
    error = "ZeroDivisionError: integer division or modulo by zero"
    with refused(
        f"the Ray cluster at {cluster} failed ({error}); finished work is kept, so run it again"
    ):
        list(executor().map(failing, [5]))


def test_what_is_under_way_when_a_part_fails_is_kept(cluster: str, tmp_path: Path) -> None:
    slow = executor().map(Squares(tmp_path, 0.2), [1, 2, -1, 3], ordered=False)
    results = []
    with refused("no root of -1"):
        results.extend(slow)
    assert sorted(results) == [1, 4, 9]


def test_workers_of_a_machine_share_its_memory(cluster: str) -> None:
    with limit_memory(MemoryLimits(memory=1 << 30)):
        assert set(executor().map(memory_of_a_worker, range(4))) == {(1 << 30) // processors()}


def test_a_part_that_kills_its_workers_ends_in_one_line(cluster: str) -> None:
    message = (
        rf"\Athe Ray cluster at {cluster} failed \(WorkerCrashedError: [^\n]*"
        r"finished work is kept, so run it again\Z"
    )
    with pytest.raises(UserError, match=message):
        list(executor().map(deadly, range(2)))


def test_a_killed_worker_costs_its_part_and_no_more(cluster: str, tmp_path: Path) -> None:
    squares = Squares(tmp_path, 0.05)
    results = executor().map(squares, range(60), at_once=5)
    first = [next(results) for _ in range(10)]
    os.kill(squares.done_by()[0][0], signal.SIGKILL)
    assert [*first, *results] == [number * number for number in range(60)]
    assert len(squares.done_by()) <= 60 + 5


def test_a_cluster_that_is_not_there() -> None:
    message = (
        r"^the Ray cluster at 127.0.0.1:9 does not answer: .*; is it running, and is this one of "
        r"its machines\?$"
    )
    with pytest.raises(UserError, match=message), run_on("ray:127.0.0.1:9"):
        pass


DEAD_CLUSTER = """
import sys, psutil
from pathlib import Path
from ranktilt.parallel.executor import executor
from ranktilt.parallel.run_on import run_on
from tests.parallel.test_ray_executor import Squares
with run_on("ray"):
    for number, found in enumerate(executor().map(Squares(Path(sys.argv[1]), 0.05), range(200))):
        print(found, flush=True)
        if number == 9:
            for process in psutil.Process().children(recursive=True):
                if process.name() == "raylet":
                    process.kill()
"""


def test_a_dead_cluster_ends_in_one_line_after_what_was_done(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEAD_CLUSTER, str(tmp_path)], capture_output=True, text=True
    )
    results = [int(line) for line in done.stdout.split()]
    assert results == [number * number for number in range(len(results))]
    assert 10 <= len(results) < 200
    [message] = re.findall(
        r"^ranktilt\.errors\.UserError: (.*)$", done.stderr, re.MULTILINE
    )  # Ray says more beside it
    assert message.startswith("the Ray cluster of this machine failed (")
    assert message.endswith("; finished work is kept, so run it again")
