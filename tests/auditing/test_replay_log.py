"""A published run is split into the input order, the model's part and the parser's: the parts are
what was put in.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from ranktilt import Collection, DataError, audit
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.replay_log.replay_log import replay_log
from ranktilt.auditing.replay_log.result import INPUT, MODEL, PARTS, PUBLISHED, STRICT, ReplayedLog
from ranktilt.auditing.replay_log.runs import LogRuns, log_runs
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.views.replay_log import view
from tests.rankers.llm.judge import WORDS, Answer, logged, rank_llm_text
from tests.refusals import refused
from tests.toy import collection_of, run_of

TOPICS, SIZE = 24, 10


def collection() -> Collection:
    """Ten documents a query, of which half have a twin of a language model; the first two and their
    twins count.
    """
    docs, qrels = list[dict[str, str]](), dict[str, dict[str, int]]()
    for topic in range(TOPICS):
        for number in range(SIZE):
            source = ("human", "llm")[number % 2]
            name = f"{topic}-{number}"
            text = " ".join(Random(name).choices(WORDS, k=15))
            docs.append(
                {
                    "id": name,
                    "text": text,
                    "source": source,
                    "origin": f"{topic}-{number - number % 2}",
                }
            )
        qrels[f"q{topic}"] = {f"{topic}-{number}": 1 for number in range(4)}
    return collection_of(
        docs, {f"q{topic}": f"topic number {topic} of all" for topic in range(TOPICS)}, qrels
    )


EVERY = collection()
CANDIDATES = run_of(
    EVERY,
    {
        f"q{topic}": {f"{topic}-{number}": -float(rank) for rank, number in enumerate(order)}
        for topic in range(TOPICS)
        for order in [Random(topic).sample(range(SIZE), k=SIZE)]
    },
    ranker="first",
)


def lists() -> dict[str, list[str]]:
    frame = CANDIDATES.frame()
    return {
        str(query): part["doc_id"].to_list()
        for (query,), part in frame.group_by("query_id", maintain_order=True)
    }


def runs(folder: Path, answer: Answer, **options: Any) -> LogRuns:
    queries = dict(EVERY.queries.select("id", "text").iter_rows())
    texts = dict(EVERY.docs.select("id", "text").iter_rows())
    records, _ = logged(lists(), queries, texts, answer, **options)
    (folder / "log.json").write_text(rank_llm_text(records))
    return log_runs(folder / "log.json", CANDIDATES, EVERY)


def change(split: ReplayedLog, part: int, measure: str, pair: Pair = (ALL, ALL)) -> Change:
    change_of_part = split.change(PARTS[part], measure, pair)
    assert change_of_part is not None
    return change_of_part


def sorted_by(key: Callable[[int], int], ids: Sequence[str]) -> str:
    """Passages in the order of what `key` makes of their numbers, as a model writes it."""
    order = sorted(range(len(ids)), key=lambda position: key(int(ids[position].partition("-")[2])))
    return " > ".join(f"[{position + 1}]" for position in order)


def relevant_first(query: str, ids: Any) -> str:
    return sorted_by(lambda number: number >= 4, ids)


def llm_first(query: str, ids: Any) -> str:
    return sorted_by(lambda number: -(number % 2), ids)


def prose(query: str, ids: Any) -> str:
    return f"{len(ids)} passages have been provided."


def both(query: str, ids: Any) -> str:
    return (relevant_first if int(query[1:]) % 2 else prose)(query, ids)


MEASURES = ["nDCG@5", "P@3", "ExposureRatio", "NDSR@3", "Share@3", "NDKL@5", "AWRF@5", "EEL@5"]


@pytest.mark.parametrize("answer", [llm_first, both])
def test_parts_add_up_to_the_audit_of_the_published_run(tmp_path: Path, answer: Answer) -> None:
    log = runs(tmp_path, answer)
    split = replay_log(log, EVERY, MEASURES, by="source", resamples=200)
    audited = audit(EVERY, list(log.runs.values()), MEASURES, by="source", resamples=200)
    for number, measure in enumerate(("nDCG@5", "P@3")):
        tilts = {t.run: t.value for t in audited.tilts if t.measure == measure}
        means = dict(zip(log.runs, 100 * audited.values[:, number, 0].mean(axis=1), strict=True))
        for values, pair in ((means, (ALL, ALL)), (tilts, ("human", "llm"))):
            model, parser, random_part, strict = (
                change(split, part, measure, pair) for part in range(4)
            )
            assert model.old + model.value + parser.value == pytest.approx(
                values[PUBLISHED], nan_ok=True
            )
            assert [model.old, model.new, parser.new, strict.new] == pytest.approx(
                [values[INPUT], values[MODEL], values[PUBLISHED], values[STRICT]], nan_ok=True
            )
            assert random_part.value == pytest.approx(model.value + parser.value, nan_ok=True)
    for measure in MEASURES[2:]:
        pair = (ALL, ALL) if measure in MEASURES[5:] else ("human", "llm")
        model, parser, _, strict = (change(split, part, measure, pair) for part in range(4))
        effects = {e.run: e.value for e in audited.card if repr(e.estimand) == measure}
        assert [model.old, model.new, parser.new, strict.new] == pytest.approx(
            [effects[run] for run in log.runs]
        )
        assert model.old + model.value + parser.value == pytest.approx(effects[PUBLISHED])
    assert split.pairs == (("human", "llm"),)


def test_model_ranking_is_its_part_and_parsed_prose_is_not(
    tmp_path: Path,
) -> None:
    answers = (relevant_first, prose)
    model, parser = (
        replay_log(runs(tmp_path, answer), EVERY, ["nDCG@5"], resamples=500) for answer in answers
    )
    ranked, none, nothing, both_parts = (
        change(split, part, "nDCG@5") for split in (model, parser) for part in (0, 1)
    )
    assert ranked.low > 10
    assert ranked.p_corrected < 0.05
    assert (none.value, none.low, none.high, none.p) == (0, 0, 0, 1)
    assert (nothing.value, nothing.low, nothing.high, nothing.p) == (0, 0, 0, 1)
    assert both_parts.value != 0
    assert (model.failures, parser.failures) == (0, TOPICS * 4)
    assert parser.kinds == {"off-format": TOPICS * 4}
    (example,) = parser.examples
    assert (example.kind, example.times) == ("off-format", TOPICS * 4)
    assert example.answer == "4 passages have been provided."


def thoughtful(query: str, ids: Any) -> str:
    return f"<think>Perhaps [1] > [2], but not {len(ids)}.</think>\n{relevant_first(query, ids)}"


def undecided(query: str, ids: Any) -> str:
    return f"{relevant_first(query, ids)}\nor else {llm_first(query, ids)}"


def cut_off(query: str, ids: Any) -> str:
    return f"<think>Perhaps {relevant_first(query, ids)}"


def test_reasoning_around_answers_changes_no_part(tmp_path: Path) -> None:
    plain = replay_log(runs(tmp_path, relevant_first), EVERY, ["nDCG@5"], resamples=200)
    log = tmp_path / "log.json"
    log.write_text(
        log.read_text().replace('"response": "', '"response": "<think>Perhaps [1] > [2]</think>')
    )
    wrapped = replay_log(log_runs(log, CANDIDATES, EVERY), EVERY, ["nDCG@5"], resamples=200)
    assert plain.kinds == wrapped.kinds == {"ok": TOPICS * 4}
    for part in range(4):
        assert change(plain, part, "nDCG@5") == change(wrapped, part, "nDCG@5")
    assert wrapped.examples[0].answer.startswith("<think>Perhaps [1] > [2]"), (
        "answers stay as they came"
    )


def test_log_of_numbers_read_within_reasoning_is_replayed(tmp_path: Path) -> None:
    replayed = runs(tmp_path, thoughtful).rankings
    assert (replayed.unmatched, replayed.other_order) == ([], 0)
    assert {answer.kind for answer in replayed.answers} == {"ok"}


def test_several_rankings_and_reasoning_alone_are_told_from_none(tmp_path: Path) -> None:
    several = replay_log(runs(tmp_path, undecided), EVERY, [], max_failures=50)
    assert (several.kinds, several.ambiguous, several.failures) == ({"ambiguous": 96}, 96, 96)
    page = view(several)
    texts = [sentence.text for sentence in page.sentences]
    assert texts[0].startswith(
        "In 96 of 96 answers there is more than one ranking: the published run shows the"
    )
    moved = sum(answer.moved for answer in several.answers)
    assert texts[1] == (
        f"The published parser treats {moved} of the 96 answers with no or several rankings as a "
        "ranking."
    )
    assert page.headline == (
        "failed: 96 of 96 answers (100.0 %) contain no ranking, or more than one; at most 50.0 % "
        "allowed"
    )
    unfinished = replay_log(runs(tmp_path, cut_off), EVERY, [])
    assert (unfinished.kinds, unfinished.ambiguous) == ({"cut off": 96}, 0)
    texts = [sentence.text for sentence in view(unfinished).sentences]
    assert texts[0].startswith("In 96 of 96 answers there is no ranking: ")
    assert (
        texts[-1] == "96 answers are cut off within their reasoning: the model needs more tokens."
    )


def test_preference_is_the_models_part_and_file_says_source(tmp_path: Path) -> None:
    log = runs(tmp_path, llm_first)
    split = replay_log(log, EVERY, by="source", max_failures=50, resamples=500, seed=3)
    assert split.measures == ("nDCG@10", "ExposureRatio")
    for measure in split.measures:
        model, parser, *_ = (change(split, part, measure, ("human", "llm")) for part in range(4))
        assert model.high < 0, "further from human"
        assert model.p_corrected < 0.05
        assert parser.value == 0
    assert ReplayedLog.load(split.save(tmp_path / "found.json")) == split
    half = replay_log(runs(tmp_path, both), EVERY, [], max_failures=50)
    content = json.loads(half.to_json())
    assert content["kinds"] == {"ok": TOPICS * 2, "off-format": TOPICS * 2}
    assert (content["failures"], content["passed"], half.passed) == (TOPICS * 2, True, True)
    assert not replay_log(runs(tmp_path, both), EVERY, [], max_failures=49).passed
    strict = [
        log_runs(tmp_path / "log.json", CANDIDATES, EVERY, seed=seed).runs[STRICT]
        for seed in (0, 0, 1)
    ]
    assert strict[0] == strict[1] != strict[2]


def test_only_queries_with_a_call_count(tmp_path: Path) -> None:
    log = runs(tmp_path, relevant_first)
    text = (tmp_path / "log.json").read_text()
    (tmp_path / "log.json").write_text(text[: text.rindex("}, ", 0, len(text) // 2) + 1])
    half = log_runs(tmp_path / "log.json", CANDIDATES, EVERY)
    names = half.runs[PUBLISHED].queries
    assert 0 < len(names) < TOPICS
    split = replay_log(half, EVERY, ["nDCG@5"], resamples=200)
    assert change(split, 0, "nDCG@5").queries == split.queries == len(names)
    assert note_sentences(split.notes) == ()
    frame = log.runs[PUBLISHED].frame()
    complete = names[:-1]
    assert (
        half.runs[PUBLISHED]
        .frame()
        .head(len(complete) * SIZE)
        .equals(frame.head(len(complete) * SIZE))
    )


def test_mismatch_is_named(tmp_path: Path) -> None:
    log_of_runs = runs(tmp_path, prose)
    log = tmp_path / "log.json"
    none = f"{log}: none of its 96 calls fits the candidates: call 1 "
    with refused(f"{none}passage [1] is not a candidate of query 'q0'", DataError):
        log_runs(log, run_of(EVERY, {"q0": dict.fromkeys([lists()["q0"][-1], "1-2"], 1.0)}), EVERY)
    with refused(f"{none}shows passages that are not candidates", DataError):
        log_runs(log, run_of(EVERY, {"q5": {"5-0": 2.0, "5-2": 1.0}}), EVERY)
    blank = Collection(
        *(frame.with_columns(text=pl.lit("")) for frame in (EVERY.docs, EVERY.queries)), EVERY.qrels
    )
    by_text = (
        "shows passages that are not candidates; prompts are matched by text: name a collection"
    )
    with refused(f"{none}{by_text}", DataError):
        log_runs(log, CANDIDATES, blank)
    unjudged = Collection(EVERY.docs, EVERY.queries, EVERY.qrels[:0])
    assert replay_log(log_of_runs, unjudged).changes == ()
    no = "cannot be split; name a measure such as nDCG@10, or ExposureRatio with groups"
    for measures, by, message in (
        (["nDCG@5"], None, "nDCG@5 needs judgments, and there are none: name them (--qrels FILE)"),
        (["ExposureRatio"], None, "ExposureRatio needs a column to group by (--by)"),
        (["HeadToHead"], "source", f"HeadToHead {no}"),
    ):
        with refused(message):
            replay_log(log_of_runs, unjudged, measures, by=by)
    with refused("expected a percentage from 0 to 100 as max_failures, got 200"):
        replay_log(log_of_runs, EVERY, max_failures=200)


def test_calls_that_are_left_out_are_named(tmp_path: Path) -> None:
    runs(tmp_path, relevant_first)
    log = tmp_path / "log.json"
    text = log.read_text().replace("[1] ", "[1] unknown ", 1)
    log.write_text(text)
    log_of_runs = log_runs(log, CANDIDATES, EVERY)
    split = replay_log(log_of_runs, EVERY, ["nDCG@5"], max_failures=0, resamples=200)
    assert [call.call for call in split.unmatched] == [1]
    (note,) = note_sentences(split.notes)
    assert note.startswith(
        "warning: 1 call of 96 cannot be matched, counted as failed (first: call 1 passage "
    )
    assert note.endswith("; 1 query left out entirely: q0")
    assert set(log_of_runs.runs[PUBLISHED].queries) == {f"q{topic}" for topic in range(1, TOPICS)}
    assert (len(split.answers), split.unreadable, split.failures, split.passed) == (95, 0, 1, False)
    assert replay_log(log_of_runs, EVERY, [], max_failures=100 / 96).passed
    calls = [
        call if n % 4 else call.replace("[1] ", "[1] unknown ", 1)
        for n, call in enumerate(text.split("}, "))
    ]
    log.write_text("}, ".join(calls))
    with refused(
        f"{log}: no query is complete: call 1 passage [1] is not a candidate of query 'q0'",
        DataError,
    ):
        log_runs(log, CANDIDATES, EVERY)


def test_ligatures_of_a_broken_encoding_lose_no_query(tmp_path: Path) -> None:
    """A prompt says what the candidate's bytes mean: EF AC 81 is the ligature fi, read letter by
    letter.
    """
    broken = [b"\xef\xac\x81".decode("latin-1"), b"\xef\xac\x82".decode("latin-1")]
    texts = ["five flat fins", "two flags fit", "no fish fled", "fifty flies fit"]
    docs = [
        {
            "id": f"d{n}",
            "text": text.replace("fi", broken[0]).replace("fl", broken[1]),
            "source": "human",
            "origin": "",
        }
        for n, text in enumerate(texts)
    ]
    collection = collection_of(docs, {"q": "which fins"}, {"q": {"d3": 1}})
    prompts = {f"d{n}": text for n, text in enumerate(texts)}
    records, _ = logged(
        {"q": list(prompts)}, {"q": "which fins"}, prompts, lambda query, ids: "[4] [3] [2] [1]"
    )
    (tmp_path / "log.json").write_text(rank_llm_text(records))
    log = log_runs(
        tmp_path / "log.json",
        run_of(collection, {"q": {f"d{n}": -float(n) for n in range(4)}}),
        collection,
    )
    assert (log.rankings.unmatched, log.rankings.answers[0].kind) == ([], "repaired")
    assert log.runs[MODEL].frame()["doc_id"].to_list() == ["d3", "d2", "d1", "d0"]
