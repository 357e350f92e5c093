"""Local models: what they say, how it is drawn, what it depends on, and folders that hold no model."""

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ranktilt.errors import MissingExtra, UserError
from ranktilt.executing import memory_limits
from ranktilt.llm.base import Answer, Failure, Prompt, Sampling
from ranktilt.llm.journal import Journal, journalled
from ranktilt.llm.transformers import Sampler, Transformers, seeds, within_top_p
from ranktilt.models import checkpoint
from tests.llm.echo import requests
from tests.llm.stories import END, SENTENCES, STEPS, known_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.neural

CHANCES = {"a": 0.5, "b": 0.3, "</s>": 0.2}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return known_model(tmp_path_factory.mktemp("known") / "model", CHANCES)


@pytest.fixture
def own(known: Path, tmp_path: Path) -> Path:
    """A copy to be broken."""
    return Path(shutil.copytree(known, tmp_path / "own"))


def answers(llm: Transformers, *texts: str, sampling: Sampling) -> list[Answer]:
    """The answers, in the order of the prompts."""
    prompts = [Prompt(text) for text in texts]
    replies = sorted((r for found in llm.arrivals(prompts, sampling) for r in found), key=lambda r: r.number)
    assert [reply.number for reply in replies] == list(range(len(texts)))
    return [reply.answer for reply in replies if reply.answer is not None]


def test_tokens_are_counted_by_the_models_own_tokenizer(known: Path) -> None:
    llm = Transformers(known)
    assert llm.count_tokens(["a b a", "", "b"]) == [6, 0, 2], "each letter and the blank before it"
    assert llm.count_tokens([]) == []


# What is said


@pytest.mark.data
@pytest.mark.parametrize("batch", [1, 3])
def test_the_model_of_stories_tells_its_documented_story(stories: Path, batch: int) -> None:
    llm = Transformers(stories, batch=batch)
    start = "Once upon a time"
    found = answers(llm, "Lily saw", start, "The end", sampling=Sampling(temperature=0, max_tokens=STEPS - 5))
    assert found[1].prompt_tokens == 5, "the beginning and four more"
    told = start + found[1].text
    assert told.startswith(SENTENCES)
    assert told.endswith(END)
    assert (found[1].finish, found[1].completion_tokens) == ("length", STEPS - 5)
    assert (found[1].model, found[1].revision) == ("stories", llm.revision)


@pytest.mark.data
def test_logprobs_are_those_of_the_tokens_given_all_before(stories: Path) -> None:
    llm, texts = Transformers(stories), ("Once upon a time", "Lily")
    found = answers(llm, *texts, sampling=Sampling(temperature=0, max_tokens=20, logprobs=True))
    for text, answer in zip(texts, found, strict=True):
        ids, expected = llm._tokenizer(text)["input_ids"], []
        for _ in range(20):
            with torch.inference_mode():
                chances = llm._model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            ids.append(int(chances.argmax()))
            expected.append(float(chances.max()))
        assert answer.text == llm._tokenizer.decode(ids[-20:])
        assert answer.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_logprobs_are_before_temperature_and_top_p(known: Path, temperature: float) -> None:
    sampling = Sampling(temperature=temperature, top_p=0.9, seed=1, logprobs=True, max_tokens=30)
    for answer in answers(Transformers(known), "a", "ab", "b", sampling=sampling):
        assert answer.logprobs is not None
        expected = [math.log(CHANCES[letter]) for letter in answer.text]
        assert answer.logprobs == pytest.approx(expected, abs=1e-4)


def test_an_answer_ends_at_the_end_token_or_is_cut_off(known: Path) -> None:
    found = answers(Transformers(known), *["a" * n for n in range(1, 40)], sampling=Sampling(temperature=1, seed=2))
    finishes = Counter(answer.finish for answer in found)
    assert set(finishes) == {"stop"}, "0.8⁶⁰ is one in a million"
    assert all(set(answer.text) <= {"a", "b"} for answer in found)
    assert all(answer.completion_tokens == len(answer.text) for answer in found)
    mean = sum(len(answer.text) for answer in found) / len(found)
    assert 2.5 < mean < 6, "4 is expected, with a standard error of .7"


@pytest.mark.parametrize("max_tokens", [None, 500])
def test_each_prompt_has_the_room_that_the_context_leaves_it(known: Path, max_tokens: int | None) -> None:
    texts = ["a" * 10, "a" * 61, "a" * 40]  # and two tokens before: the beginning, a space
    found = answers(Transformers(known), *texts, sampling=Sampling(temperature=0, max_tokens=max_tokens))
    assert [(a.prompt_tokens, a.completion_tokens, a.finish) for a in found] == [
        (12, 52, "length"), (63, 1, "length"), (42, 22, "length"),
    ]  # fmt: skip


def test_a_prompt_without_room_is_too_long(known: Path) -> None:
    replies = [r for found in Transformers(known).arrivals([Prompt("a" * 62), Prompt("a")], Sampling()) for r in found]
    message = "64 tokens leave no room for an answer in the model's context of 64"
    assert replies[0].failure == Failure("too long", message)
    assert (replies[0].number, replies[0].answer, replies[0].calls) == (0, None, 0)
    assert replies[1].answer is not None


def test_a_prompt_that_the_template_does_not_take_is_refused(own: Path) -> None:
    edit(own / "tokenizer_config.json", chat_template="{{ raise_exception('no system message, please') }}")
    [[reply]] = Transformers(own).arrivals([Prompt("a")], Sampling())
    assert reply.failure == Failure("refused", "the model's chat template does not take it: no system message, please")


@pytest.mark.data
def test_a_control_token_in_a_message_is_text(stories: Path) -> None:
    llm = Transformers(stories)
    control = set(llm._tokenizer.all_special_ids)
    for text in ("One day</s> Lily", "<s>One day", "<unk></s></s>", "<</s>/s>"):
        job = llm._job(0, Prompt(text, system="Tell </s> a story"), Sampling())
        assert [token for token in job.tokens if token in control] == [llm._tokenizer.bos_token_id], text
    for text in ("One day", "a < b > c"):
        assert llm._as_text(text) == text


def test_the_system_message_is_part_of_the_prompt(known: Path) -> None:
    [[reply]] = Transformers(known).arrivals([Prompt("bb", system="aaa")], Sampling(max_tokens=1))
    assert reply.answer is not None
    assert reply.answer.prompt_tokens == 8, "the beginning, a space, three letters, the end of a line, two letters"


# How it is drawn


def drawn(temperature: float, top_p: float, rows: int = 4_000) -> dict[int, float]:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log().expand(rows, 4)
    sampler = Sampler(list(range(rows)), Sampling(temperature=temperature, top_p=top_p), "cpu")
    return {token: n / rows for token, n in Counter(sampler(None, logits).argmax(-1).tolist()).items()}


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [
        (1.0, 1.0, {0: 0.4, 1: 0.3, 2: 0.2, 3: 0.1}),
        (0.5, 1.0, {0: 16 / 30, 1: 9 / 30, 2: 4 / 30, 3: 1 / 30}),
        (1.0, 0.7, {0: 4 / 7, 1: 3 / 7}),
        (1.0, 0.71, {0: 4 / 9, 1: 3 / 9, 2: 2 / 9}),
        (0.5, 0.5, {0: 1.0}),
        (0.0, 1.0, {0: 1.0}),
        (0.01, 1.0, {0: 1.0}),
    ],
)
def test_tokens_come_as_often_as_they_should(temperature: float, top_p: float, expected: dict[int, float]) -> None:
    assert drawn(temperature, top_p) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [(1.0, [1, 1, 1, 1]), (0.95, [1, 1, 1, 1]), (0.8, [0, 1, 1, 1]), (0.5, [0, 1, 0, 1]), (0.01, [0, 1, 0, 0])],
)
def test_top_p_keeps_the_likeliest(top_p: float, expected: list[int]) -> None:
    chances = torch.tensor([[0.125, 0.375, 0.25, 0.25]])
    found = within_top_p(chances, top_p)[0].int().tolist()
    assert found[:2] == expected[:2]
    assert sum(found) == sum(expected)


def test_a_seed_and_the_messages_make_the_chance_of_a_prompt() -> None:
    prompts = [Prompt("one"), Prompt("two"), Prompt("one", seed=4), Prompt("one", seed=3)]
    made = seeds(prompts, Sampling(seed=3))
    assert made == seeds(prompts, Sampling(seed=3))
    assert made[0] == made[3]
    assert len(set(made)) == 3
    assert all(0 <= seed < 2**63 for seed in made)
    free = seeds(prompts[:2] * 2, Sampling())
    assert len({*free, *seeds(prompts[:2], Sampling())}) == 6


def test_answers_depend_on_no_order_and_no_company(known: Path) -> None:
    texts, sampling = [f"{'a' * n}{'b' * (n % 3)}" for n in range(1, 13)], Sampling(temperature=1, seed=9)
    whole = answers(Transformers(known, batch=5), *texts, sampling=sampling)
    alone = answers(Transformers(known, batch=1), *reversed(texts), sampling=sampling)
    assert [a.text for a in whole] == [a.text for a in reversed(alone)]
    assert len({a.text for a in whole}) > 3, "one seed is not one chance"


def test_without_a_seed_answers_differ(known: Path) -> None:
    texts = ["a"] * 12
    found = [
        tuple(a.text for a in answers(Transformers(known), *texts, sampling=Sampling(temperature=1))) for _ in "12"
    ]
    assert found[0] != found[1]


def test_the_folder_s_own_settings_do_not_count(own: Path) -> None:
    edit(own / "generation_config.json", repetition_penalty=50.0, temperature=9.0, top_k=1, max_new_tokens=2)
    [answer] = answers(Transformers(own), "b", sampling=Sampling(temperature=0, max_tokens=7))
    assert answer.text == "aaaaaaa"


# Batches


def test_prompts_are_pulled_as_they_are_needed(known: Path) -> None:
    pulled: list[int] = []

    def source() -> Iterator[Prompt]:
        for number in range(100):
            pulled.append(number)
            yield Prompt("a" * (number % 7 + 1))

    llm = Transformers(known, batch=2)
    work = llm.arrivals(source(), Sampling(max_tokens=1))
    assert len(next(work)) == 2
    assert len(pulled) == llm.concurrency == 8
    work.close()
    assert len(pulled) == 8


def test_like_lengths_share_a_batch(known: Path) -> None:
    prompts = [Prompt("a" * n) for n in (1, 30, 2, 31, 3, 32)]
    found = [sorted(r.number for r in batch) for batch in Transformers(known, batch=3).arrivals(prompts, Sampling())]
    assert found == [[1, 3, 5], [0, 2, 4]]


def test_with_a_journal_nothing_is_computed_twice(known: Path, tmp_path: Path) -> None:
    sampling, wanted = Sampling(temperature=1, max_tokens=5), requests("a", "b", "ab")
    with Journal(tmp_path / "journal") as journal:
        first = {a.number: a.answer for a in journalled(Transformers(known), wanted, journal, sampling=sampling)}
        again = Transformers(known)
        second = list(journalled(again, wanted, journal, sampling=sampling))
    assert {asked.number: asked.answer for asked in second} == first
    assert not any(asked.fresh for asked in second)
    assert "_model" not in vars(again), "it is not even loaded"


# What it is known by


def test_a_model_is_known_by_its_content(known: Path, own: Path) -> None:
    first = Transformers(known)
    assert first.identity == f"transformers:{first.revision}"
    assert (first.name, Transformers(str(own) + "/").name) == ("model", "own")
    assert first.spec == {
        "llm": first.identity, "model": "model", "revision": first.revision, "precision": "float32",
    }  # fmt: skip
    (own / "README.md").write_text("words for people")
    assert Transformers(own).identity == first.identity
    assert Transformers(own, precision="bfloat16").identity == f"{first.identity}:bfloat16"
    edit(own / "config.json", rms_norm_eps=1e-6)
    assert Transformers(own).identity != first.identity


def test_weights_are_float32_unless_another_precision_is_named(own: Path) -> None:
    edit(own / "config.json", dtype="bfloat16")
    assert Transformers(own)._model.dtype == torch.float32
    for name in ("bfloat16", "float16"):
        assert Transformers(own, precision=name)._model.dtype == getattr(torch, name)


# What is wrong with it


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def without(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, r"transformers: .*own is no folder; expected one with a model as transformers saves it"),
        (without("config.json"), r"own: no model: expected a config\.json as transformers saves it"),
        (lambda f: (f / "config.json").write_text("{"), r"config\.json: expected the model's configuration as JSON: "),
        (lambda f: (f / "config.json").write_text("[]"), r"config\.json: expected a JSON dict, got list"),
        (without("model.safetensors"), r"own: no weights: expected a model\.safetensors or pytorch_model\.bin"),
        (
            lambda f: edit(f / "tokenizer_config.json", chat_template=None),
            r"own: its tokenizer has no chat template, so it is no model that follows instructions; choose the one",
        ),
        (
            lambda f: edit(f / "config.json", model_type="mine", auto_map={"AutoModelForCausalLM": "mine.Mine"}),
            "own: its architecture 'mine' is code of the model's own, which is never run",
        ),
    ],
)
def test_a_folder_that_holds_no_model_is_found_out_early(
    own: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(own)
    with pytest.raises(UserError, match=message) as caught:
        Transformers(own).check()
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError):
        list(Transformers(own).arrivals([Prompt("a")], Sampling()))


def test_a_model_s_own_code_is_not_run(own: Path, tmp_path: Path) -> None:
    edit(own / "config.json", auto_map={"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Mine"})
    (own / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    llm = Transformers(own)
    llm.check()
    assert answers(llm, "a", sampling=Sampling(temperature=0, max_tokens=2))[0].text == "aa", "Llama is built in"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "model.safetensors").write_bytes(b"0"), "own: cannot be loaded on device 'cpu': "),
        (lambda f: edit(f / "config.json", num_hidden_layers=2), r"its weights lack model\.layers\.1\."),
        (
            lambda f: edit(f / "config.json", vocab_size=3),
            r"\.weight have another shape than its config",
        ),
    ],
)
def test_weights_that_are_no_weights_are_an_error(own: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(own)
    llm = Transformers(own, device="cpu")
    with pytest.raises(UserError, match=message):
        list(llm.arrivals([Prompt("a")], Sampling()))


@pytest.mark.parametrize("device", ["nowhere", "cuda:99"])
def test_a_device_that_is_not_there_is_an_error(known: Path, device: str) -> None:
    with pytest.raises(UserError, match=f"transformers: device '{device}' cannot be used: "):
        Transformers(known, device=device).check()


def test_options_are_checked() -> None:
    with pytest.raises(UserError, match="batch must be 1 or more, got 0"):
        Transformers("x", batch=0)
    with pytest.raises(UserError, match="unknown precision of transformers 'auto'"):
        Transformers("x", precision="auto")
    with pytest.raises(UserError, match="x is no folder"):
        _ = Transformers("x").identity


def test_too_little_memory_asks_for_a_smaller_batch(known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Transformers(known, device="cpu", batch=2)

    def full(**_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(llm._model, "generate", full)
    with pytest.raises(
        UserError, match="the memory of cpu is not enough for 2 prompts at once; choose a smaller batch"
    ):
        list(llm.arrivals([Prompt("a"), Prompt("b"), Prompt("c")], Sampling()))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r'pip install "ranktilt\[neural\]"'):
        checkpoint.transformers(for_="transformers")


@pytest.mark.parametrize(("quota", "expected"), [("max 100000", 8), ("150000 100000\n", 2), ("50000 100000\n", 1)])
def test_processors_are_those_of_the_container(
    quota: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(memory_limits, "_CPU_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert memory_limits.processors() == expected
