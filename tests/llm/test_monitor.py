"""A server that answers nobody ends everything, and another model than asked is told of."""

import pytest

from ranktilt.errors import DataWarning, UserError
from ranktilt.llm.base import Answer, Failure, FailureKind, Reply
from ranktilt.llm.openai import ServerMonitor
from tests.refusals import refused

GOOD = Reply(0, Answer("a", "stop", 1, 1, "tiny"), None)


def failed(kind: FailureKind = "unavailable") -> Reply:
    return Reply(0, None, Failure(kind, "busy"))


def monitor(concurrency: int = 1) -> ServerMonitor:
    return ServerMonitor("tiny", "http://h/v1", concurrency)


def test_a_server_never_reached_ends_with_the_first() -> None:
    with refused(
        "cannot reach http://h/v1: busy; is the server well, the base URL right, the timeout long enough, "
        "and does it serve a model named 'tiny'?"
    ):
        monitor().look([failed()], reached=False)


@pytest.mark.parametrize(("concurrency", "most"), [(1, 8), (8, 8), (20, 20)])
def test_how_many_in_a_row_are_too_many(concurrency: int, most: int) -> None:
    one = monitor(concurrency)
    one.look([failed()] * (most - 1), reached=True)
    with pytest.raises(UserError, match=r"^http://h/v1 answers nobody: busy"):
        one.look([failed()], reached=True)


def test_an_answer_or_a_prompt_too_long_between_starts_the_count_again() -> None:
    one = monitor()
    one.look([failed()] * 7 + [GOOD] + [failed()] * 7 + [failed("too long")] * 100 + [failed()] * 7, reached=True)
    with pytest.raises(UserError, match="answers nobody: busy"):
        one.look([failed()], reached=True)


def test_refused_prompts_end_it_only_where_none_was_answered() -> None:
    monitor().look([GOOD] + [failed("refused")] * 100, reached=True)
    with pytest.raises(UserError, match="answers nobody"):
        monitor().look([failed("refused")] * 8, reached=True)


def test_another_model_is_told_once_a_name() -> None:
    one = monitor()
    names = ("tiny", "huge", "huge", "tiny-2024-07-18", "vast")
    with pytest.warns(DataWarning) as warned:
        assert [one.model(name) for name in names] == [None] * 5
    assert [str(w.message) for w in warned] == [
        "asked http://h/v1 for model 'tiny', and 'huge' answered: both names are recorded",
        "asked http://h/v1 for model 'tiny', and 'vast' answered: both names are recorded",
    ]
