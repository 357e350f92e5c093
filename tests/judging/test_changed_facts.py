"""Grades of versions that say something else: which are asked for, on which scale, and what is
refused.
"""

from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.generation.versions.factors import read_factors
from ranktilt.generation.versions.make import versions
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.prices import price_versions
from ranktilt.judging.grading.changed_facts import grade_versions, price_grades, scale_of
from ranktilt.judging.grading.settings import Grading
from tests.generation.scripted import Scripted
from tests.toy import collection_of

pytestmark = pytest.mark.usefixtures("own_cache")
TEXTS = {
    "a": "Of 40 people 12 slept well. They were all asked twice.",
    "b": "The bridge has 17 arches. It was built in stone.",
    "c": "Rivers carry water. They never sleep.",
    "d": "In 1990 it rained on 85 days. Nobody minded.",
}
"""Two sentences each, with numbers in the first; c has none, and says with other facts what it
said.
"""
GRADES = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1}}
SCORES = {("q1", "a"): 0, ("q1", "b"): 2, ("q2", "a"): 1}


def judged_collection(grades: dict[str, dict[str, int]] | None = None) -> Collection:
    docs = [{"id": name, "text": text} for name, text in TEXTS.items()]
    return collection_of(
        docs, {"q1": "first", "q2": "second"}, GRADES if grades is None else grades
    )


def graded(prompt: str, times: int) -> str:
    """What the judge says of a query and a document, whose second sentence tells which it is;
    shorter ones get a 3.
    """
    query = "q1" if "Query: first" in prompt else "q2"
    name = next((document for document, text in TEXTS.items() if text.split(". ")[1] in prompt), "")
    return f"##final score: {SCORES[query, name] if name else 3}"


def test_false_versions_have_the_judges_grade_and_unchanged_texts_that_of_their_original() -> None:
    """On a scale of 0 to 2 a judge's 0, 1, 2 and 3 are 0, 1, 1 and 2; what nobody judges is not
    asked for.
    """
    model = Scripted(graded)
    designed = versions(judged_collection(), ["length", "facts"], by_rule=True)
    false_versions = grade_versions(designed, model).versions
    assert sorted(false_versions.collection.qrels.rows()) == sorted(
        [
            ("q1", "a", 2),
            ("q1", "a+length", 2),
            ("q1", "a+facts", 0),
            ("q1", "a+facts+length", 2),
            ("q1", "b", 0),
            ("q1", "b+length", 0),
            ("q1", "b+facts", 1),
            ("q1", "b+facts+length", 2),
            ("q1", "c", 1),
            ("q1", "c+length", 1),
            ("q1", "c+facts", 1),
            ("q1", "c+facts+length", 1),
            ("q2", "a", 1),
            ("q2", "a+length", 1),
            ("q2", "a+facts", 1),
            ("q2", "a+facts+length", 2),
        ]
    )
    assert false_versions.collection.spec["design"]["judged"] == {
        "judge": "umbrela-tiny",
        "model": "lab/tiny",
        "prompt": "umbrela",
        "scale": [0, 1, 1, 2],
        "pairs": 6,
        "graded": 6,
        "unchanged": 2,
        "lower": 1,
        "higher": 3,
    }
    assert (len(model.prompts), model.checked > 0) == (6, True)
    assert not any("Rivers" in prompt or TEXTS["a"] in prompt for prompt in model.prompts)


def test_a_prompt_of_a_factor_is_answered_before_its_texts_are_judged(tmp_path: Path) -> None:
    """Each of two models is priced, and both are in what is written down."""
    text = "Among 40 people a dozen found good sleep. Every one answered this question two times."
    model, judge = Scripted(lambda *_: text), Scripted(lambda *_: "1")
    (tmp_path / "so.txt").write_text("Say it so: {text}")
    factors = (*read_factors([str(tmp_path / "so.txt")]), *read_factors(["facts"], by_rule=True))
    alone = judged_collection({"q1": {"a": 1}})
    alone = Collection(alone.docs.head(1), alone.queries, alone.qrels)
    request = (alone, factors, Crossing())
    rows = [
        *price_versions(*request, model, price=(1.0, 1.0)),
        price_grades(*request, judge, Grading(prompt="basic"), price=(1.0, 1.0)),
    ]
    assert [(row.name, row.prompt, row.texts) for row in rows] == [
        ("so", str(tmp_path / "so.txt"), 1),
        ("judge", "basic", 2),
    ]
    assert rows[1].tokens_in == 2 * rows[1].estimate.tokens_in
    assert rows[1].tokens_out == 2 * rows[1].estimate.tokens_out
    assert (model.prompts, judge.prompts) == ([], [])
    versions_made = versions(alone, factors, llm=model)
    graded = grade_versions(versions_made, judge, Grading(prompt="basic")).versions
    assert sorted("a dozen" in prompt for prompt in judge.prompts) == [False, True]
    assert not any("40" in prompt for prompt in judge.prompts)
    assert (graded.spec["judge"]["prompt"]["name"], graded.spec["judge"]["counts"]["graded"]) == (
        "basic",
        2,
    )


@pytest.mark.parametrize(
    ("highest", "scale"),
    [(1, (0, 0, 1, 1)), (2, (0, 1, 1, 2)), (3, (0, 1, 2, 3)), (4, (0, 1, 3, 4))],
)
def test_grades_are_of_the_collections_scale(highest: int, scale: tuple[int, ...]) -> None:
    assert scale_of(judged_collection({"q1": {"a": highest, "b": 0}}).qrels) == scale


@pytest.mark.parametrize(
    ("names", "grades", "prompt", "message"),
    [
        (
            "length",
            GRADES,
            "umbrela",
            "a judge (--judge) grades versions whose facts are changed: name the factor",
        ),
        (
            "facts",
            {"q1": {"a": 0.5}},
            "umbrela",
            "judgments of the collection: expected whole grades from 0 or more",
        ),
        (
            "facts",
            {"q1": {"a": -1}},
            "umbrela",
            "judgments of the collection: expected whole grades from 0 or more",
        ),
        (
            "facts",
            {"q1": {"c": 1}},
            "umbrela",
            "nothing to judge: no version whose facts were changed",
        ),
        ("facts", {}, "umbrela", "nothing to judge: no version whose facts were changed"),
        ("facts", GRADES, "umbrella", "unknown prompt 'umbrella'"),
    ],
)
def test_what_cannot_be_judged_is_refused_and_nothing_is_asked(
    names: str, grades: dict[str, dict[str, float]], prompt: str, message: str
) -> None:
    judge, collection = Scripted(graded), judged_collection({})
    rows = [(query, doc, grade) for query, docs in grades.items() for doc, grade in docs.items()]
    types = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}
    collection = Collection(
        collection.docs, collection.queries, pl.DataFrame(rows, schema=types, orient="row")
    )
    designed = versions(collection, [names], by_rule=True)
    with pytest.raises(UserError) as caught:
        grade_versions(designed, judge, Grading(prompt=prompt))
    assert str(caught.value).startswith(message)
    assert judge.prompts == []
