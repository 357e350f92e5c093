"""The folder of a training, and what a trainer is told: whose it is, what a kill leaves, when the time is over."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ranktilt.errors import UserError
from ranktilt.training.options import Schedule
from ranktilt.training.trainer import CHECKPOINTS, TrainingRun, last_checkpoint
from tests.rankers.tiny import write_json
from tests.refusals import refused

SPEC = {"kind": "toy", "steps": 5, "sources": ("human",)}


@pytest.fixture
def run(tmp_path: Path) -> TrainingRun:
    return TrainingRun("train toy", tmp_path / "model", Schedule(), SPEC, 0.0)


def test_a_new_folder_may_be_used(run: TrainingRun) -> None:
    assert run.finished is None
    assert not run.folder.exists()


@pytest.mark.parametrize("done", [False, True])
def test_the_same_training_is_known_again_and_another_refused(run: TrainingRun, done: bool) -> None:
    write_json(run.folder / "training.json", {"spec": SPEC, **({"figures": {"steps": 5}} if done else {})})
    found = run.finished
    assert (found.resumed if found else None) == (5 if done else None)
    what = "a model trained" if done else "an unfinished training"
    with refused(f"{run.folder}: holds {what} with steps 5, asked is 6; name another folder, or remove this one"):
        _ = replace(run, spec={**SPEC, "steps": 6}).finished
    with pytest.raises(UserError, match=r"with sources \['human'\], asked is None \(and seed\); name"):
        _ = replace(run, spec={**SPEC, "sources": None, "seed": 1}).finished


def test_a_record_that_is_none_is_refused(run: TrainingRun) -> None:
    run.folder.mkdir()
    (run.folder / "training.json").write_text("{")
    with pytest.raises(UserError, match=r"training\.json: expected .* as JSON"):
        _ = run.finished


def test_places_of_something_else_are_refused(run: TrainingRun) -> None:
    run.folder.mkdir()
    (run.folder / "letters.txt").write_text("mine")
    with refused(f"{run.folder}: holds files of something else; name a new folder"):
        _ = run.finished
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
    with refused("train toy: the loss is no number at step 0; choose a lower rate than 1"):
        clock.on_log(SimpleNamespace(learning_rate=1.0), state, None, logs={"loss": float("nan")})
