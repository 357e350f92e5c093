"""Probes that read with a model: perplexity, the conditions of the theorem, and the spectrum of
vectors.
"""

import json
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktilt as rt
from ranktilt.data.cache import StoredVectors
from ranktilt.data.notes.probes import TheoremChecked
from ranktilt.errors import UserError
from ranktilt.explaining.explain import explain
from ranktilt.explaining.explanation import Explanation
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.explaining.probe_table import probe
from ranktilt.explaining.spectrum import SpectrumProbe, singular_values, spectrum
from ranktilt.explaining.vectors import DocumentVectors
from ranktilt.papers.dai.theorem import (
    Condition,
    TwinReading,
    check_theorem,
    conditions,
    divergence,
    read_twin,
)
from ranktilt.reporting.sentences.explaining.probes import (
    findings_words,
    sources_sentence,
    theorem_meaning,
)
from ranktilt.reporting.views import view
from tests.llm.server import Server, vector
from tests.rankers.tiny import language_model
from tests.refusals import refused
from tests.toy import collection_of, toy, versions


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return language_model("masked", tmp_path_factory.mktemp("masked") / "masked")


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return language_model("causal", tmp_path_factory.mktemp("causal") / "causal")


@pytest.mark.neural
def test_a_masked_model_says_what_masking_several_at_once_changes(
    masked: Path, own_cache: Path
) -> None:
    perplexity = probe(f"perplexity:{masked}(every=3,precision=float32)")(toy())
    exact = probe(f"perplexity:{masked}(every=0,precision=float32)")(toy())
    apart = np.mean(
        [row["mean"] - true["mean"] for row, true in zip(perplexity.rows, exact.rows, strict=True)]
    )
    assert perplexity.rows[0]["masking error"] == pytest.approx(apart, abs=1e-5)
    assert perplexity.rows[0]["masking error sd"] > 0
    assert "masking error" not in exact.rows[0]
    trigrams, again = explain(toy(), ["perplexity", f"perplexity:{masked}"]).results
    assert (
        (trigrams.probe, again.probe)
        == ("perplexity", perplexity.probe)
        == ("perplexity", f"perplexity:{masked}")
    )
    assert "nats per word (trigrams)" in trigrams.summary


@pytest.mark.neural
def test_rewrites_after_their_origin_or_no_mask(
    causal: Path, masked: Path, own_cache: Path, tmp_path: Path
) -> None:
    perplexity = PerplexityProbe(str(causal), context="origin", precision="float32")(toy())
    plain = PerplexityProbe(str(causal), precision="float32")(toy())
    assert [row["values"] for row in perplexity.rows] == [0, 3]
    assert perplexity.rows[1]["mean"] != plain.rows[1]["mean"]
    assert "given the origin" in perplexity.summary
    with pytest.raises(UserError, match="only a causal model can read another text first"):
        PerplexityProbe(str(masked), context="origin")(toy())
    bare = Path(shutil.copytree(masked, tmp_path / "bare"))
    settings = bare / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "mask_token": None}))
    with refused(f"{bare}: its tokenizer has no mask token, so it is not a masked language model"):
        PerplexityProbe(str(bare))(toy())


@pytest.mark.neural
def test_the_theorem_from_folders(causal: Path, masked: Path, own_cache: Path) -> None:
    text = f'theorem:"{causal}"(plm="{causal}",reader="{causal}")'
    (result,) = explain(toy(), [text]).results
    rows = {row["condition"]: row for row in result.rows}
    assert rows["semantic superiority"]["value"] == 0
    assert rows["divergence, mean margin"]["value"] <= 0
    with pytest.raises(UserError, match=r"needs two or three language models: "):
        explain(toy(), [f'theorem:"{causal}"'])
    with pytest.raises(UserError, match="a masked language model cannot be used as a causal one"):
        explain(toy(), [f'theorem:"{causal}"(plm="{masked}")'])


class Known:
    """A model of the tokens a, b and c, with one distribution alone and another after a text."""

    window = 100

    def __init__(self, alone: Sequence[float], conditional: Sequence[float]) -> None:
        self.alone, self.conditional = alone, conditional

    def distributions(self, text: str, prefix: str = "") -> np.ndarray:
        return np.log(np.tile(np.array(self.conditional if prefix else self.alone), (len(text), 1)))

    def scored_tokens(self, text: str) -> np.ndarray:
        return np.array(["abc".index(letter) for letter in text], dtype=np.int64)

    def reads_whole(self, prefix: str, text: str) -> bool:
        return len(prefix) + len(text) <= self.window


FLAT = (1 / 3, 1 / 3, 1 / 3)
SHARP, TURNED = (0.8, 0.1, 0.1), (0.1, 0.1, 0.8)


def checked(
    llm: Known, plm: Known, reader: Known | None, pairs: Sequence[tuple[str, str]]
) -> dict[str, Condition]:
    twins = [read_twin(human, rewrite, llm=llm, plm=plm, reader=reader) for human, rewrite in pairs]
    return {condition.condition: condition for condition in conditions(twins)}


PAIRS = [("bc", "aab"), ("cb", "ab"), ("bc", "aaab")]


def test_all_hold_and_what_the_origin_tells_is_the_bound() -> None:
    """The reader knows the human text, the origin tells of the rewrite, and the PLM writes as the
    LLM does.
    """
    rows_by_check = checked(
        Known(SHARP, SHARP), Known(SHARP, SHARP), Known(TURNED, (0.6, 0.3, 0.1)), PAIRS
    )
    human = -math.log(0.1)
    reader = -(math.log(0.8) + math.log(0.1)) / 2
    after = [
        -(2 * math.log(0.6) + math.log(0.3)) / 3,
        -(math.log(0.6) + math.log(0.3)) / 2,
        -(3 * math.log(0.6) + math.log(0.3)) / 4,
    ]
    rewrite = [
        -(2 * math.log(0.8) + math.log(0.1)) / 3,
        -(math.log(0.8) + math.log(0.1)) / 2,
        -(3 * math.log(0.8) + math.log(0.1)) / 4,
    ]
    assert rows_by_check["semantic superiority"].value == pytest.approx(human - reader, abs=1e-9)
    assert rows_by_check["conditional redundancy"].value == pytest.approx(
        reader - np.mean(after), abs=1e-9
    )
    assert rows_by_check["bounded perplexity"].value == 0
    apart = 0.8 * math.log(0.8 / 0.6) + 0.1 * math.log(0.1 / 0.3)
    assert rows_by_check["divergence, mean margin"].value == pytest.approx(apart, abs=1e-9)
    assert rows_by_check["divergence, share of positions"].value == 1
    assert rows_by_check["conclusion"].value == pytest.approx(np.mean(rewrite) - human, abs=1e-9)
    assert {row.holds for row in rows_by_check.values()} == {"yes"}
    # ε is the mean of what the origin takes off the PLM's perplexity, and counts against the
    # divergence.
    plm = Known(FLAT, SHARP)
    rows_by_check = checked(
        Known(SHARP, SHARP), plm, Known(TURNED, FLAT), [("cc", "aa"), ("cc", "ab")]
    )
    gains = [math.log(3) + math.log(0.8), math.log(3) + (math.log(0.8) + math.log(0.1)) / 2]
    epsilon = np.mean(gains)
    assert rows_by_check["bounded perplexity"].value == pytest.approx(max(epsilon, 0), abs=1e-9)
    assert rows_by_check["bounded perplexity"].note == f"largest of a twin: {gains[0]:.3f}"
    apart = 0.8 * math.log(0.8 * 3) + 0.2 * math.log(0.1 * 3)
    assert rows_by_check["divergence, mean margin"].value == pytest.approx(
        apart - max(epsilon, 0), abs=1e-9
    )


@pytest.mark.parametrize(
    ("plm", "reader", "fails"),
    [
        (
            Known(TURNED, SHARP),
            Known(SHARP, (0.02, 0.02, 0.96)),
            ["semantic superiority", "conditional redundancy", "conclusion"],
        ),
        (Known(SHARP, SHARP), Known(TURNED, (0.02, 0.02, 0.96)), ["conditional redundancy"]),
        (
            Known(SHARP, TURNED),
            Known(TURNED, (0.6, 0.3, 0.1)),
            ["divergence, share of positions", "divergence, mean margin"],
        ),
    ],
)
def test_each_fails_in_turn(plm: Known, reader: Known, fails: list[str]) -> None:
    rows_by_check = checked(Known(SHARP, SHARP), plm, reader, PAIRS)
    assert [name for name, row in rows_by_check.items() if row.holds == "no"] == fails


def test_divergence_in_nats_without_a_reader_and_an_interval_that_decides_nothing() -> None:
    assert divergence(np.log([[0.75, 0.25]]), np.log([[0.25, 0.75]])) == pytest.approx(
        [0.5 * math.log(3)]
    )
    with np.errstate(divide="ignore"):
        assert divergence(np.log([[1.0, 0.0]]), np.log([[0.5, 0.5]])) == pytest.approx(
            [math.log(2)]
        )
    rows_by_check = checked(Known(SHARP, SHARP), Known(SHARP, SHARP), None, PAIRS)
    assert list(rows_by_check) == ["bounded perplexity", "conclusion"]
    higher = TwinReading(human=1.0, rewrite=2.0, rewrite_given_human=1.0)
    lower = TwinReading(human=2.0, rewrite=1.0, rewrite_given_human=1.0)
    conclusion = conditions([higher, lower, higher, lower])[-1]
    assert conclusion.value == 0
    assert conclusion.low < 0 < conclusion.high
    assert conclusion.holds == "undecided"


EXPLAINED: dict[str, Any] = {
    "spec": {"collection": {}, "by": "source", "runs": [], "ranker": None, "ranktilt": "0"},
    "reference": "human",
    "notes": (),
}


def checked_note(source: str, conclusion: str, *failed: str) -> TheoremChecked:
    """A finding about one source, whose texts are easier to predict by 0.3 nats."""
    return TheoremChecked(
        source=source,
        failed=failed,
        undecided=(),
        conclusion=conclusion,  # type: ignore[arg-type]
        value=-0.3,
        low=-0.4,
        high=-0.2,
        pairs=9,
    )


def test_theorem_on_several_sources() -> None:
    easier = checked_note("llm", "yes")
    failing = checked_note("gpt", "no", "divergence, share of positions")
    assert sources_sentence([easier, failing]) == (
        "The retriever's model finds llm texts easier and gpt texts harder to predict than their "
        "originals; theorem 4.1 applies to 1 of 2 sources."
    )
    assert theorem_meaning([easier, failing]).startswith(
        "The theorem makes no prediction for 1 of 2 sources, as its conditions do not hold."
    )
    assert findings_words([failing]).endswith(
        "Theorem 4.1 does not apply: divergence at every position is not met."
    )
    open_note = replace(checked_note("opt", "undecided"), undecided=("semantic superiority",))
    assert sources_sentence([easier, open_note]) == (
        "The retriever's model finds llm texts easier to predict than their originals and is not "
        "shown to find opt texts easier or harder; theorem 4.1 applies to 1 of 2 sources."
    )
    assert sources_sentence([open_note, open_note]).startswith(
        "The retriever's model is not shown to find opt and opt texts easier or harder to predict "
        "than their originals; theorem"
    )
    unread = replace(easier, is_complete=False)
    assert findings_words([unread]).endswith(
        "Without a reader, three of the four conditions of theorem 4.1 were not checked."
    )
    assert theorem_meaning([unread]).startswith("Whether the theorem applies here stays open.")


def collection(*pairs: tuple[str, str]) -> object:
    return collection_of(
        versions(dict(zip(("human", "llm"), zip(*pairs, strict=True), strict=True))), {}, {}
    )


def test_rows_and_sentence_of_a_collection() -> None:
    llm = plm = Known(SHARP, SHARP)
    theorem = check_theorem(
        collection(*PAIRS, ("", "")),
        llm,
        plm,
        Known(TURNED, (0.6, 0.3, 0.1)),
        names=["L", "P", "R"],
    )  # type: ignore[arg-type]
    assert [row["source"] for row in theorem.rows] == ["llm"] * 6
    assert theorem.question.endswith("(LLM: L · B: P · H: R)")
    assert re.fullmatch(
        r"The retriever's model finds llm texts easier to predict than their originals, by "
        r"\d\.\d+ nats per token \[\d\.\d+, \d\.\d+\] \(3 pairs of twins\)\. All conditions of "
        r"theorem 4\.1 hold\.",
        theorem.summary,
    )
    page = view(Explanation(**EXPLAINED, sources=("llm",), results=(theorem,)))
    (drawn,) = page.first_figure_blocks
    assert [row.label for row in drawn.rows] == [
        "conclusion",
        "semantic superiority",
        "conditional redundancy",
        "divergence everywhere",
        "divergence on average",
    ]
    assert drawn.rows[0].readings[0].mark.value > 0  # right of 0 holds, as for the conditions
    assert page.meaning.startswith("The conditions hold under which rewrites are easier to predict")
    assert {row["origins cut"] for row in theorem.rows} == {0}
    plm.window = 5  # pairs of twins have 5, 4 and 6 letters
    sharp: Any = Known(SHARP, SHARP)
    cut = check_theorem(collection(*PAIRS, ("", "")), llm, sharp, plm)
    assert {row["origins cut"] for row in cut.rows} == {1}
    with pytest.raises(UserError, match="needs 3 twins with tokens on both sides, llm has 2"):
        check_theorem(collection(*PAIRS[:2]), llm, plm)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no source has twins of human"):
        check_theorem(collection_of(versions({"human": "a"}), {}, {}), llm, plm)


def vectors_of(
    human: np.ndarray[Any, Any], llm: np.ndarray[Any, Any]
) -> tuple[DocumentVectors, str, Any]:
    both = np.concatenate([human, llm]).astype(np.float32)
    rows = np.arange(len(human)), np.arange(len(human), len(both))
    numbers = np.arange(len(both))
    return DocumentVectors(stored=StoredVectors(both, numbers), row=numbers), "llm", rows


def test_as_numpy_down_to_the_300th_value_and_too_few_twins_are_refused() -> None:
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(2_000, 384)) * np.geomspace(1, 1e-3, 384)
    values, directions = singular_values(iter(np.array_split(matrix, 7)), 384)
    _, expected, right = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(values[:300], expected[:300], rtol=1e-6)
    rounded = singular_values(iter([matrix.astype(np.float32).astype(float)]), 384)[0]
    assert (abs(rounded - expected) <= 2**-23 * np.linalg.norm(matrix)).all()
    np.testing.assert_allclose(np.abs((directions[:, :20] * right[:20].T).sum(0)), 1, atol=1e-6)
    few = vectors_of(*np.random.default_rng(4).normal(size=(2, 10, 16)))
    with pytest.raises(
        UserError, match=r"16 values need more than 16 pairs .*: spectrum\(values=N\)"
    ):
        spectrum(*few)
    assert len(spectrum(*few, values=5).values) == 5
    with pytest.raises(UserError, match="values must be a whole number of at least 1, got 0"):
        SpectrumProbe(values=0)


def test_identical_twins_have_relative_values_of_one_and_a_concentrated_source_is_found() -> None:
    human = np.random.default_rng(1).normal(size=(80, 16))
    spectra = spectrum(*vectors_of(human, human))
    assert (spectra.relative == 1).all()
    assert (spectra.heads[0], spectra.interval, spectra.leading.g) == (spectra.heads[1], (0, 0), 0)
    generator = np.random.default_rng(2)
    human = generator.normal(size=(400, 20))
    llm = human * np.where(np.arange(20) < 2, 1.5, 0.8)
    spectra = spectrum(*vectors_of(human, llm))
    assert spectra.relative[-1] < 0.9 < 1.3 < spectra.relative[0]
    assert (spectra.pairs, spectra.interval[0] > 0) == (400, True)
    squares = np.linalg.svd(llm, compute_uv=False) ** 2
    assert spectra.heads[1] == pytest.approx(squares[:2].sum() / squares.sum(), rel=1e-4)
    human, llm = np.zeros((9, 3)), np.random.default_rng(3).normal(size=(9, 3))
    human[:, 0] = 1
    spectra = spectrum(*vectors_of(human, llm))
    assert spectra.relative == pytest.approx(np.linalg.svd(llm, compute_uv=False)[:1] / 3)


def test_values_within_rounding_are_not_compared() -> None:
    """One dimension is dead, and one below what float32 keeps: of their noise no ratio is shown."""
    generator = np.random.default_rng(5)
    sides = generator.normal(size=(2, 400, 8)) * np.array([8, 4, 2, 1, 1, 1, 1e-7, 0])
    turned = sides @ np.linalg.qr(generator.normal(size=(8, 8)))[0] + 3
    exact = [np.linalg.svd(side, compute_uv=False) for side in turned]
    vectors, _, rows = vectors_of(*turned)
    spectra = spectrum(vectors, "llm", rows)
    known = len(spectra.relative)
    assert known == 7, "six and the constant"
    assert spectra.relative == pytest.approx(exact[1][:known] / exact[0][:known], rel=1e-5)
    for values, true in ((spectra.reference, exact[0]), (spectra.values, exact[1])):
        assert (abs(values - true)[:known] <= spectra.rounding).all()
    docs = versions({"human": "tt", "llm": "tt"})
    probed = SpectrumProbe().describe(collection_of(docs, {}, {}), "human", (spectra,))
    says = findings_words(probed.figures[0].findings)
    assert says.endswith(f"{spectra.relative[-1]:.3f} at the last one above rounding.")
    coarse = spectrum(
        DocumentVectors(stored=vectors.stored, row=vectors.row, store="float16"), "llm", rows
    )
    assert coarse.rounding > 1_000 * spectra.rounding
    with np.errstate(invalid="ignore"):
        nothing = spectrum(*vectors_of(np.zeros((9, 3)), np.zeros((9, 3))))
    probed = SpectrumProbe().describe(collection_of(docs, {}, {}), "human", (nothing,))
    assert findings_words(probed.figures[0].findings) == "llm: no value is above rounding."


def test_vectors_of_a_server_that_alone_knows_their_length(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against numpy's values; the second explanation asks for nothing again."""
    texts = {s: [f"text {n} {s}" for n in range(20)] for s in ("human", "llm")}
    collection = collection_of(versions(texts), {"q": "text"}, {})
    sides = [
        np.linalg.svd(np.array([vector(text) for text in side_texts]), compute_uv=False)
        for side_texts in texts.values()
    ]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        spectral, near = rt.explain(
            collection, ["spectrum", "similarity"], rt.ranker("dense:openai:tiny")
        ).results
        before = len(server.requests)
        rt.explain(collection, ["spectrum"], rt.ranker("dense:openai:tiny"))
        assert len(server.requests) == before
    assert spectral.rows[0]["values"] == len(sides[0])
    np.testing.assert_allclose(spectral.figures[0].series["llm"], sides[1] / sides[0], rtol=1e-4)
    cosines = [float(np.dot(vector(a), vector(b))) for a, b in zip(*texts.values(), strict=True)]
    assert near.rows[0]["mean"] == pytest.approx(np.mean(cosines), abs=1e-5)
