"""Effects of factors in words, named after what was done to a text, the largest first."""

import re
from dataclasses import replace

from ranktilt.explaining.factors.effects import factor_effects
from ranktilt.explaining.factors.result import DesignedFactor
from ranktilt.generation.versions.factors import AS_IS, PROMPTED, RULES
from ranktilt.reporting.document import Section
from ranktilt.reporting.sentences.explaining.factors import factor_sentences, meaning_sentence
from ranktilt.reporting.sentences.explaining.treatments import is_named_by_level, treatment
from ranktilt.reporting.views.explain.factors import view
from tests.explaining.factors.designed import designed, full, scored


def test_sentences_are_named_after_treatments() -> None:
    low_high = {"length": ["as is", "halved"], "words": ["as is", "synonyms"]}
    collection = designed(["length", "words", "tone"], full(3))
    design = {**collection.spec["design"], "low_high": {**low_high, "tone": ["formal", "slangy"]}}
    collection = replace(collection, spec={**collection.spec, "design": design})
    planted = {("length",): -1.0, ("tone",): 0.8}
    effects = factor_effects(collection, [scored(collection, planted)])
    (sentence,) = factor_sentences(effects)
    number = r"\d+\.\d ranks \[\d+\.\d, \d+\.\d\]"
    assert re.match(
        rf"Halving a text costs it {number} under planted and tone=slangy lifts a text by "
        rf"{number}; no effect of replacing words of a text by synonyms is shown \(detectable:",
        sentence,
    )
    assert re.fullmatch(
        rf"Halving a text costs it {number} under planted, the largest of 3 effects\.",
        view(effects).headline,
    )
    assert meaning_sentence(effects) == (
        "These are causes: the same documents were ranked with and without each change. Sides "
        "whose texts differ in length and tone look favoured or pushed down, whoever wrote them."
    )
    unshown = replace(effects, rows=tuple(replace(row, p_corrected=1.0) for row in effects.rows))
    assert re.fullmatch(
        r"No change is shown to move a text\. You would find a move of \d+\.\d ranks four times "
        r"in five, a smaller one less often\.",
        meaning_sentence(unshown),
    )


def test_effects_are_sorted_by_size() -> None:
    collection = designed(["length", "words"], full(2))
    effects = factor_effects(collection, [scored(collection, {("words",): 1.0})])
    section = view(effects).sections[0]
    assert isinstance(section, Section)
    (table,) = [
        block for block in section.blocks if getattr(block, "caption", "").startswith("Effects")
    ]
    values = [abs(float(row.cells[1].value or 0)) for row in table.rows]
    assert values == sorted(values, reverse=True)
    assert table.rows[0].cells[0].text == "words"


def test_every_built_in_factor_has_words_of_its_own() -> None:
    for factor in (*RULES.values(), *PROMPTED.values()):
        designed_factor = DesignedFactor(name=factor.name, low=AS_IS, high=factor.high)
        assert not is_named_by_level(designed_factor)
    llama = DesignedFactor(name="source", low=AS_IS, high="llama")
    assert treatment(llama) == "letting llama rewrite a text"
