"""Local models, in this process and behind a server: what they say, how it is drawn, and folders
that hold none.
"""

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer, Failure, Prompt, Reply, Sampling, llm
from ranktilt.llm.transformers import Transformers
from tests.llm.stories import END, SENTENCES, STEPS, known_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.neural

CHANCES = {"a": 0.5, "b": 0.3, "</s>": 0.2}
START = "Once upon a time"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_model(tmp_path_factory.mktemp("known") / "model", CHANCES)


@pytest.fixture
def copied(known: Path, tmp_path: Path) -> Path:
    """A copy to be broken."""
    return Path(shutil.copytree(known, tmp_path / "own"))


def answers(llm: Transformers, *texts: str, sampling: Sampling) -> list[Answer]:
    """The answers, in the order of the prompts."""
    prompts = [Prompt(text=text) for text in texts]
    replies = sorted(
        (r for batch in llm.arrivals(prompts, sampling) for r in batch), key=lambda r: r.number
    )
    assert [reply.number for reply in replies] == list(range(len(texts)))
    return [reply.answer for reply in replies if reply.answer is not None]


def check_story(answer: Answer) -> None:
    text = START + answer.text
    assert text.startswith(SENTENCES)
    assert text.endswith(END)
    assert (answer.finish, answer.completion_tokens) == ("length", STEPS - 5)
    assert answer.prompt_tokens == 5, "the beginning and four more"


@pytest.mark.data
@pytest.mark.parametrize("batch", [1, 3])
def test_the_model_of_stories_tells_its_documented_story(stories: Path, batch: int) -> None:
    llm = Transformers(stories, batch=batch)
    _, story, _ = answers(
        llm, "Lily saw", START, "The end", sampling=Sampling(temperature=0, max_tokens=STEPS - 5)
    )
    check_story(story)
    assert (story.model, story.revision) == ("stories", llm.revision)


@pytest.mark.data
def test_logprobs_are_those_of_the_tokens_given_all_before_and_a_control_token_is_text(
    stories: Path,
) -> None:
    llm, texts = Transformers(stories), ("Once upon a time", "Lily")
    replies = answers(llm, *texts, sampling=Sampling(temperature=0, max_tokens=20, logprobs=True))
    for text, answer in zip(texts, replies, strict=True):
        ids, expected = llm._tokenizer(text)["input_ids"], []
        for _ in range(20):
            with torch.inference_mode():
                chances = llm._model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            ids.append(int(chances.argmax()))
            expected.append(float(chances.max()))
        assert answer.text == llm._tokenizer.decode(ids[-20:])
        assert answer.logprobs == pytest.approx(expected, abs=1e-4)
    llm = Transformers(stories)
    control = set(llm._tokenizer.all_special_ids)
    for text in ("One day</s> Lily", "<s>One day", "<unk></s></s>", "<</s>/s>"):
        job = llm._tokenized(0, Prompt(text=text, system="Tell </s> a story"), Sampling())
        assert [token for token in job.tokens if token in control] == [
            llm._tokenizer.bos_token_id
        ], text
    for text in ("One day", "a < b > c"):
        assert llm._as_text(text) == text


def test_logprobs_are_before_temperature_and_top_p(known: Path) -> None:
    for temperature in (0.0, 0.5, 2.0):
        sampling = Sampling(
            temperature=temperature, top_p=0.9, seed=1, logprobs=True, max_tokens=30
        )
        for answer in answers(Transformers(known), "a", "ab", "b", sampling=sampling):
            assert answer.logprobs is not None
            expected = [math.log(CHANCES[letter]) for letter in answer.text]
            assert answer.logprobs == pytest.approx(expected, abs=1e-4)


def test_an_answer_ends_at_the_end_token_and_like_lengths_share_a_batch_pulled_as_needed(
    known: Path,
) -> None:
    replies = answers(
        Transformers(known),
        *["a" * n for n in range(1, 40)],
        sampling=Sampling(temperature=1, seed=2),
    )
    finishes = Counter(answer.finish for answer in replies)
    assert set(finishes) == {"stop"}, "0.8⁶⁰ is one in a million"
    assert all(set(answer.text) <= {"a", "b"} for answer in replies)
    assert all(answer.completion_tokens == len(answer.text) for answer in replies)
    mean = sum(len(answer.text) for answer in replies) / len(replies)
    assert 2.5 < mean < 6, "4 is expected, with a standard error of .7"
    source = iter([Prompt(text="a" * n) for n in (1, 30, 2, 31, 3, 32) * 9])
    work = Transformers(known, batch=3).arrivals(source, Sampling(max_tokens=1))
    assert [sorted(reply.number for reply in next(work)) for _ in range(2)] == [
        [3, 5, 11],
        [1, 7, 9],
    ]
    assert len(list(source)) == 54 - 3 * 4


def test_each_prompt_has_the_room_that_the_context_leaves_it(known: Path) -> None:
    for max_tokens in (None, 500):
        llm, sampling = Transformers(known), Sampling(temperature=0, max_tokens=max_tokens)
        replies = answers(llm, "a" * 10, "a" * 61, "a" * 40, sampling=sampling)
        assert [(a.prompt_tokens, a.completion_tokens, a.finish) for a in replies] == [
            (12, 52, "length"),
            (63, 1, "length"),
            (42, 22, "length"),
        ]
        assert llm.count_tokens(["a b a", "", "b"]) == [6, 0, 2], (
            "each letter and the blank before it"
        )
        [[reply]] = llm.arrivals([Prompt(text="a" * 62)], sampling)
        message = "64 tokens leave no room for an answer in the model's context of 64"
        assert reply == Reply(number=0, failure=Failure(kind="too long", message=message))


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [
        (1.0, 1.0, {"a": 0.5, "b": 0.3, "": 0.2}),
        (0.5, 1.0, {"a": 25 / 38, "b": 9 / 38, "": 4 / 38}),
        (1.0, 0.7, {"a": 5 / 8, "b": 3 / 8}),
        (1.0, 0.4, {"a": 1.0}),
    ],
)
def test_tokens_are_drawn_as_stated(
    known: Path, temperature: float, top_p: float, expected: dict[str, float]
) -> None:
    sampling = Sampling(temperature=temperature, top_p=top_p, seed=1, max_tokens=1)
    llm = Transformers(known, batch=2_000)
    counts = Counter(answer.text for answer in answers(llm, *["a"] * 2_000, sampling=sampling))
    assert {text: n / 2_000 for text, n in counts.items()} == pytest.approx(expected, abs=0.04)


def test_a_seed_repeats_the_answers_and_no_other_chance_is_touched(known: Path) -> None:
    texts = ["a" * n for n in range(1, 13)]
    state = torch.random.get_rng_state()
    first, same, different, unseeded, again = (
        [
            answer.text
            for answer in answers(
                Transformers(known), *texts, sampling=Sampling(temperature=1, seed=seed)
            )
        ]
        for seed in (9, 9, 8, None, None)
    )
    assert first == same != different
    assert unseeded != again
    assert len(set(first)) > 3, "one seed is not one chance"
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_model_is_known_by_its_content_and_float32_unless_another_precision_is_named(
    known: Path, copied: Path
) -> None:
    first = Transformers(known)
    assert first.identity == f"transformers:{first.revision}"
    assert (first.name, Transformers(str(copied) + "/").name) == ("model", "own")
    assert first.spec == {
        "llm": first.identity,
        "model": "model",
        "revision": first.revision,
        "precision": "float32",
    }
    (copied / "README.md").write_text("words for people")
    assert Transformers(copied).identity == first.identity
    assert Transformers(copied, precision="bfloat16").identity == f"{first.identity}:bfloat16"
    edit(copied / "config.json", rms_norm_eps=1e-6)
    assert Transformers(copied).identity != first.identity
    edit(copied / "config.json", dtype="bfloat16")
    assert Transformers(copied)._model.dtype == torch.float32
    for name in ("bfloat16", "float16"):
        assert Transformers(copied, precision=name)._model.dtype == getattr(torch, name)


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def without(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "own is not a folder; expected one with a model"),
        (without("config.json"), r"own: no model: expected a config\.json"),
        (without("model.safetensors"), r"own: no weights: expected a model\.safetensors"),
        (
            lambda f: edit(f / "tokenizer_config.json", chat_template=None),
            "own: its tokenizer has no chat template",
        ),
        (
            lambda f: edit(
                f / "config.json", model_type="mine", auto_map={"AutoModelForCausalLM": "mine.Mine"}
            ),
            "own: its architecture 'mine' is the model's own code, which is never run",
        ),
        (
            lambda f: edit(f / "config.json", num_hidden_layers=2),
            r"its weights lack model\.layers\.1\.",
        ),
    ],
)
def test_a_folder_that_holds_no_model_is_an_error(
    copied: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(copied)
    with pytest.raises(UserError, match=rf"\A[^\n]*{message}[^\n]*\Z"):
        list(Transformers(copied).arrivals([Prompt(text="a")], Sampling()))
    if "lack" not in message:
        with pytest.raises(UserError, match=message):
            Transformers(copied).check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch must be 1 or more, got 0"),
        ({"precision": "auto"}, "unknown precision of transformers 'a"),
        ({"device": "cuda:99"}, "cannot be loaded on device 'cuda:99': "),
    ],
)
def test_options_that_cannot_be_are_refused(
    known: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        list(Transformers(known, **options).arrivals([Prompt(text="a")], Sampling()))


def test_own_code_is_not_run_settings_do_not_count_and_a_template_may_refuse(
    copied: Path, tmp_path: Path
) -> None:
    edit(
        copied / "config.json",
        auto_map={"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Mine"},
    )
    (copied / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    llm = Transformers(copied)
    llm.check()
    assert answers(llm, "a", sampling=Sampling(temperature=0, max_tokens=2))[0].text == "aa", (
        "Llama is built in"
    )
    assert not (tmp_path / "ran").exists()
    edit(
        copied / "generation_config.json",
        repetition_penalty=50.0,
        temperature=9.0,
        top_k=1,
        max_new_tokens=2,
    )
    [answer] = answers(Transformers(copied), "b", sampling=Sampling(temperature=0, max_tokens=7))
    assert answer.text == "aaaaaaa"
    edit(
        copied / "tokenizer_config.json",
        chat_template="{{ raise_exception('no system message, please') }}",
    )
    [[reply]] = Transformers(copied).arrivals([Prompt(text="a")], Sampling())
    assert reply.failure == Failure(
        kind="refused",
        message="the model's chat template rejects it: no system message, please",
    )


def test_too_little_memory_asks_for_a_smaller_batch(
    known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise torch.OutOfMemoryError

    llm = Transformers(known, device="cpu", batch=2)
    monkeypatch.setattr(llm._model, "generate", full)
    message = "cpu has too little memory for 2 prompts at once; choose a smaller batch"
    with pytest.raises(UserError, match=message):
        list(llm.arrivals([Prompt(text="a"), Prompt(text="b"), Prompt(text="c")], Sampling()))


# Behind `transformers serve`, a real server of OpenAI's protocol on loopback


@pytest.fixture
def served_story(stories: Path, tmp_path: Path) -> Iterator[str]:
    """URL of a server that has the model, and nothing else, and may not reach the network
    for more.
    """
    for package in ("openai", "fastapi", "uvicorn"):
        pytest.importorskip(package)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log, (host, port) = tmp_path / "log", address.split(":")
    command = [
        str(Path(sys.executable).with_name("transformers")),
        "serve",
        str(stories),
        "--device",
        "cpu",
    ]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--host", host, "--port", port],
            env={**os.environ, **offline},
            stdout=stream,
            stderr=stream,
        )
    try:
        end = time.monotonic() + 120
        while not healthy(address):
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < end, log.read_text(errors="replace")
            time.sleep(0.1)
        yield f"http://{address}/v1"
    finally:
        process.kill()
        process.wait()


def healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.data
@pytest.mark.long
def test_the_server_tells_the_documented_story(served_story: str, stories: Path) -> None:
    model = llm(f"openai:{stories}", base_url=served_story, concurrency=1)
    [reply] = model.generate([Prompt(text=START)], temperature=0.0, max_tokens=STEPS - 5)
    assert reply.answer is not None, reply.failure
    check_story(reply.answer)
