"""The perplexity probe: which model, what is read first, and what masking several tokens at once costs in truth."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from ranktilt.datasets.load import load
from ranktilt.errors import UserError
from ranktilt.models.likelihood import mean_loss
from ranktilt.probes.explain import explain, probe
from ranktilt.probes.perplexity import PerplexityProbe
from tests.models.tiny_language_models import make
from tests.refusals import refused
from tests.toy import toy


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("masked", tmp_path_factory.mktemp("perplexity") / "masked")


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("causal", tmp_path_factory.mktemp("perplexity") / "causal")


@pytest.mark.data
def test_the_mean_of_token_values_as_published(shared_data: Path) -> None:
    """Twenty documents of SCIDOCS with the values of each token (Perplexity-Trap); their mean is what is compared."""
    file = shared_data / "perplexity-trap-scidocs" / "perplexity.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 20
    for row in rows:
        assert len(row["ppl"]) == len(row["tokens"])
        assert mean_loss(np.array(row["ppl"])) == pytest.approx(math.fsum(row["ppl"]) / len(row["ppl"]), abs=1e-12)
    assert math.isnan(mean_loss(np.empty(0)))


@pytest.mark.neural
def test_a_masked_model_says_what_masking_several_at_once_changes(masked: Path, own_cache: Path) -> None:
    found = probe(f"perplexity:{masked}(every=3,precision=float32)")(toy())
    exact = probe(f"perplexity:{masked}(every=0,precision=float32)")(toy())
    means = [row["mean"] for row in exact.rows]
    apart = np.mean([row["mean"] - mean for row, mean in zip(found.rows, means, strict=True)])
    assert found.rows[0]["masking error"] == pytest.approx(apart, abs=1e-5)
    assert found.rows[0]["masking error sd"] > 0
    assert "masking error" not in exact.rows[0]
    trigrams, again = explain(toy(), ["perplexity", f"perplexity:{masked}"]).results
    assert (trigrams.probe, again.probe) == ("perplexity", found.probe) == ("perplexity", f"perplexity:{masked}")
    assert "nats per word (trigrams)" in trigrams.summary


@pytest.mark.neural
def test_rewrites_after_their_origin(causal: Path, masked: Path, own_cache: Path) -> None:
    found = PerplexityProbe(str(causal), given="origin", precision="float32")(toy())
    plain = PerplexityProbe(str(causal), precision="float32")(toy())
    human, llm = found.rows
    assert (human["values"], llm["values"]) == (0, 3)
    assert llm["mean"] != plain.rows[1]["mean"]
    assert "given the origin" in found.summary
    with pytest.raises(UserError, match="only a causal model can read another text first"):
        PerplexityProbe(str(masked), given="origin")(toy())


@pytest.mark.neural
def test_the_theorem_from_folders(causal: Path, masked: Path, own_cache: Path) -> None:
    found = explain(toy(), theorem=[str(causal), str(causal), str(causal)])
    (one,) = found.results
    rows = {row["condition"]: row for row in one.rows}
    assert rows["semantic superiority"]["value"] == 0
    assert rows["divergence, mean margin"]["value"] <= 0
    with pytest.raises(UserError, match=r"needs two or three language models: .*; got 1"):
        explain(toy(), theorem=[str(causal)])
    with pytest.raises(UserError, match="a masked language model cannot be used as a causal one"):
        explain(toy(), theorem=[str(causal), str(masked)])


@pytest.mark.parametrize(("text", "message"), [
    ("perplexity(kind=masked)", "given and kind are options of a model of transformers"),
    ("perplexity:x(kind=mask)", "unknown kind of language model 'mask'; did you mean 'masked'?"),
    ("perplexity:x(given=twin)", "given must be origin, got 'twin'"),
    ("perplexity:x(evry=2)", r"probe perplexity:x\(evry=2\): .*evry"),
    ("overlap:x", "probe overlap:x: .* takes no arguments"),
    ("spectrum(values=x)", "values must be a whole number of at least 1, got x"),
    ("spectrum@3", "probe 'spectrum@3': expected name"),
])  # fmt: skip
def test_a_wrong_text_is_one_line(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        probe(text)


@pytest.mark.data
@pytest.mark.long
def test_nfcorpus_by_trigrams(shared_data: Path) -> None:
    """Llama-2's rewrites are more predictable than the originals, to trigrams of the originals."""
    (effect,) = PerplexityProbe()(load(shared_data / "cocktail-nfcorpus")).effects
    assert effect.pairs == 3_633
    assert (effect.reference_mean, effect.source_mean) == pytest.approx((5.675, 5.469), abs=5e-3)
    assert effect.high < 0


@pytest.mark.neural
def test_a_model_without_a_mask_token_is_refused(masked: Path, tmp_path: Path, own_cache: Path) -> None:
    bare = Path(shutil.copytree(masked, tmp_path / "bare"))
    config = json.loads((bare / "tokenizer_config.json").read_text(encoding="utf-8"))
    (bare / "tokenizer_config.json").write_text(json.dumps({**config, "mask_token": None}), encoding="utf-8")
    with refused(f"{bare}: its tokenizer has no mask token, so it is no masked language model"):
        PerplexityProbe(str(bare))(toy())
