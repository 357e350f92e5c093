"""The folder of a training, and what a trainer is told: whose it is, what a kill leaves, when the time is over."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ranktilt.errors import UserError
from ranktilt.training.options import RerankerTraining, Schedule
from ranktilt.training.trainer import CHECKPOINTS, TrainingRun, last_checkpoint
from tests.rankers.tiny import write_json
from tests.refusals import refused

SPEC = {"kind": "toy", "steps": 5, "sources": ("human",)}


@pytest.fixture
def run(tmp_path: Path) -> TrainingRun:
    return TrainingRun("train toy", tmp_path / "model", Schedule(), SPEC, 0.0)


@pytest.mark.parametrize("done", [False, True])
def test_the_same_training_is_known_again_and_another_refused(run: TrainingRun, done: bool) -> None:
    write_json(run.folder / "training.json", {"spec": SPEC, **({"figures": {"steps": 5}} if done else {})})
    found = run.finished
    assert (found.resumed if found else None) == (5 if done else None)
    what = "a model trained" if done else "an unfinished training"
    with refused(f"{run.folder}: holds {what} with steps 5, not 6; name another folder, or remove this one"):
        _ = replace(run, spec={**SPEC, "steps": 6}).finished
    with pytest.raises(UserError, match=r"with sources \['human'\], not None \(and seed\); name"):
        _ = replace(run, spec={**SPEC, "sources": None, "seed": 1}).finished


def test_folders_of_something_else_are_refused(run: TrainingRun) -> None:
    assert run.finished is None
    assert not run.folder.exists()
    run.folder.mkdir()
    (run.folder / "training.json").write_text("{")
    with pytest.raises(UserError, match=r"training\.json: expected .* as JSON"):
        _ = replace(run).finished
    (run.folder / "training.json").unlink()
    (run.folder / "letters.txt").write_text("mine")
    with refused(f"{run.folder}: holds files of something else; name a new folder"):
        _ = replace(run).finished
    with refused(f"{run.folder / 'letters.txt'}: expected a folder to write to, this is a file"):
        _ = replace(run, folder=run.folder / "letters.txt").finished


def test_a_checkpoint_that_a_kill_cut_short_is_passed_over(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    states = {"checkpoint-9": '{"global_step": 9}', "checkpoint-10": '{"global_step": 10}', "checkpoint-11": '{"glo'}
    for name, state in states.items():
        (tmp_path / CHECKPOINTS / name).mkdir(parents=True)
        (tmp_path / CHECKPOINTS / name / "trainer_state.json").write_text(state)
    (tmp_path / CHECKPOINTS / "checkpoint-12").mkdir()
    assert last_checkpoint(tmp_path) == tmp_path / CHECKPOINTS / "checkpoint-10"
    assert {path.name for path in (tmp_path / CHECKPOINTS).iterdir()} == {"checkpoint-9", "checkpoint-10"}


@pytest.mark.neural
def test_the_clock_rules_a_training_by_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    from ranktilt.training import callbacks

    times = iter((100.0, 100.0, 100.0, 106.0, 160.0, 210.0, 214.0))
    monkeypatch.setattr(callbacks, "time", SimpleNamespace(monotonic=lambda: next(times)))
    clock = callbacks.Clock("train toy", minutes=2, rate=1.0, spent=6)
    group = {"lr": 0.0}
    state = SimpleNamespace(global_step=0, max_steps=9)
    optimizer = SimpleNamespace(param_groups=[group])
    rates, saved, stopped = [], [], []
    clock.on_train_begin(None, state, None)
    for _ in range(5):
        control = SimpleNamespace(should_save=False, should_training_stop=False)
        clock.on_step_end(None, state, control)
        clock.on_step_begin(None, state, control, optimizer=optimizer)
        rates.append(group["lr"])
        saved.append(control.should_save)
        stopped.append(control.should_training_stop)
    assert rates == pytest.approx([0.5, 1.0, 0.5, 0.0370, 0.0], abs=1e-3)  # 12 of 120 s up, the others down
    assert (saved, stopped) == ([False, False, True, False, False], [False] * 4 + [True])
    kept = json.loads(json.dumps(clock.state()))
    assert kept["args"]["spent"] == 120
    with refused("train toy: the loss is NaN or infinite at step 0; choose a lower rate than 1"):
        clock.on_log(SimpleNamespace(learning_rate=1.0), state, None, logs={"loss": float("nan")})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "training: expected steps of at least 1, got 0"),
        ({"rate": 0.0}, "training: expected rate above 0, got 0.0"),
        ({"minutes": float("inf")}, "training: expected minutes above 0, got inf"),
        ({"steps": 5, "minutes": 5.0}, "training: choose a number of steps or of minutes, not both"),
        ({"sources": ()}, "training: expected at least one source, got none"),
        ({"alpha": -1}, "training: expected alpha of at least 0, got -1"),
        ({"negatives": "random:0"}, "training: expected negatives as bm25:K or random:N, such as random:1000, got"),
        ({"negatives": "bm25:x"}, "training: expected negatives as bm25:K or random:N, such as random:1000, got"),
        ({"negatives": "random:3"}, "training: negatives=random:3 are fewer than the 4 of each positive"),
        ({"negatives": "random:9", "positives": "retrieved"}, "training: positives=retrieved are those of BM25's best"),
        ({"triples": "t.tsv", "positives": "all"}, "training: triples say what is positive and negative; leave out"),
        ({"loss": "hinge"}, "unknown loss of training 'hinge'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as found:
        RerankerTraining(**options)
    assert str(found.value).startswith(message)


def test_only_what_bm25_finds_is_learned_from_unless_all_is_asked_for_or_negatives_are_random() -> None:
    found = [{}, {"positives": "all"}, {"negatives": "random:9"}, {"negatives": "bm25:9"}]
    assert [RerankerTraining(**options).retrieved_only for options in found] == [True, False, False, True]


def test_presets() -> None:
    paper, notebook = (RerankerTraining.of_preset(name) for name in ("paper", "notebook"))
    names = ("rate", "max_query_tokens", "max_document_tokens", "weight_decay", "warmup_steps", "dropout", "epochs")
    assert [getattr(paper, name) for name in names] == [7e-6, 30, 200, 0.0, None, False, 1]
    assert [getattr(notebook, name) for name in names] == [2e-5, 70, 350, 0.01, 5000, True, 1000]
    for preset in (paper, notebook):
        assert (preset.pool, preset.retrieved_only, preset.negatives_per_positive) == (("random", 1000), False, 4)
        assert (preset.loss, preset.batch, preset.rows, preset.positives_per_query) == ("binary", 32, 32, None)
    given = RerankerTraining.of_preset("paper", triples="t.tsv")
    assert (given.triples, given.negatives, given.positives, given.rate) == ("t.tsv", None, None, 7e-6)
    assert RerankerTraining.of_preset("paper", negatives="bm25:50").positives == "all"


@pytest.mark.parametrize(("batch", "negatives", "groups"), [(32, 4, 6), (32, 3, 8), (5, 4, 1), (3, 4, 1)])
def test_a_batch_is_made_of_whole_groups(batch: int, negatives: int, groups: int) -> None:
    assert RerankerTraining(batch=batch, negatives_per_positive=negatives).rows == groups
    assert RerankerTraining(batch=batch, negatives_per_positive=negatives, loss="binary").rows == batch
