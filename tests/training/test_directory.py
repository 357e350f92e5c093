"""The folder of a training: whose it is, what was asked, and what a kill leaves."""

from pathlib import Path

import pytest

from ranktilt.errors import DataError, UserError
from ranktilt.training.directory import TrainingDirectory
from tests.refusals import refused
from tests.toy import no_permission, no_room

SPEC = {"kind": "toy", "steps": 5, "sources": ("human",)}


@pytest.fixture
def place(tmp_path: Path) -> TrainingDirectory:
    return TrainingDirectory(tmp_path / "model")


def finished(place: TrainingDirectory) -> TrainingDirectory:
    place.begin(SPEC, 5)
    (place.model_folder() / "weights").write_text("w")
    place.finish({"spec": SPEC, "figures": {}})
    return place


def test_a_new_folder_may_be_used(place: TrainingDirectory) -> None:
    place.require_same(SPEC)
    assert (place.steps, place.record) == (None, None)
    assert not place.folder.exists()


def test_an_unfinished_training_is_known_again(place: TrainingDirectory) -> None:
    place.begin(SPEC, 7)
    place.require_same(SPEC)
    place.require_same({"kind": "toy"})
    assert place.steps == 7
    assert place.record is None


def test_a_finished_training_is_known_again(place: TrainingDirectory) -> None:
    finished(place).require_same(SPEC)
    assert place.record == {"spec": {**SPEC, "sources": ["human"]}, "figures": {}}
    assert [path.name for path in sorted(place.folder.iterdir())] == ["training.json", "weights"]


def test_whoever_may_read_the_record_may_read_the_weights(place: TrainingDirectory) -> None:
    place.begin(SPEC, 5)
    (place.model_folder() / "weights").touch(mode=0o600)
    place.finish({"spec": SPEC, "figures": {}})
    modes = {path.stat().st_mode for path in place.folder.iterdir()}
    assert len(modes) == 1


@pytest.mark.parametrize("done", [False, True])
def test_another_spec_is_refused(place: TrainingDirectory, done: bool) -> None:
    if done:
        finished(place)
    else:
        place.begin(SPEC, 5)
    what = "a model trained" if done else "an unfinished training"
    with refused(f"{place.folder}: holds {what} with steps 5, asked is 6; name another folder, or remove this one"):
        place.require_same({**SPEC, "steps": 6})
    with pytest.raises(UserError, match=r"with sources \['human'\], asked is None \(and steps, seed\); name"):
        place.require_same({"kind": "toy", "sources": None, "steps": 6, "seed": 1})


def test_a_folder_of_something_else_is_refused(place: TrainingDirectory) -> None:
    place.folder.mkdir()
    (place.folder / "letters.txt").write_text("mine")
    with pytest.raises(UserError, match=r"model: holds files of something else; name a new folder$"):
        place.require_same(SPEC)


def test_a_file_in_its_place_is_refused(place: TrainingDirectory) -> None:
    place.folder.write_text("mine")
    with pytest.raises(UserError, match=r"model: expected a folder to write to, this is a file$"):
        place.require_same(SPEC)


@pytest.mark.parametrize(("content", "said"), [("{", "as JSON"), ("[]", "with its spec"), ('{"spec": 1}', "its spec")])
def test_a_record_that_is_none_is_refused(place: TrainingDirectory, content: str, said: str) -> None:
    place.folder.mkdir()
    (place.folder / "training.json").write_text(content)
    with pytest.raises(DataError, match=said) as caught:
        place.require_same(SPEC)
    assert caught.value.path == str(place.folder / "training.json")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with no_permission(tmp_path), pytest.raises(UserError, match="cannot be written: Permission denied"):
        TrainingDirectory(tmp_path / "model").require_same(SPEC)


def test_a_kill_before_the_plan_leaves_a_new_folder(place: TrainingDirectory) -> None:
    (place.folder / ".training").mkdir(parents=True)
    (place.folder / ".training" / ".abc.tmp").write_text("half")
    place.require_same(SPEC)
    assert place.steps is None


def test_a_kill_before_the_last_file_leaves_an_unfinished_training(place: TrainingDirectory) -> None:
    place.begin(SPEC, 5)
    (place.folder / "weights").write_text("moved already")
    place.require_same(SPEC)
    assert (place.steps, place.record) == (5, None)


@pytest.mark.neural
def test_a_checkpoint_comes_back(place: TrainingDirectory) -> None:
    torch = pytest.importorskip("torch")
    assert place.load_checkpoint("cpu") is None
    place.save_checkpoint({"step": 3, "model": {"w": torch.arange(3.0)}, "losses": [0.5]})
    state = place.load_checkpoint("cpu")
    assert state is not None
    assert (state["step"], state["losses"], state["model"]["w"].tolist()) == (3, [0.5], [0, 1, 2])


@pytest.mark.neural
def test_what_a_killed_write_left_is_cleared(place: TrainingDirectory) -> None:
    pytest.importorskip("torch")
    place.save_checkpoint({"step": 3})
    leftover = place.folder / ".training" / ".abc.tmp"
    leftover.write_text("half")
    assert place.load_checkpoint("cpu") == {"step": 3}
    assert not leftover.exists()


@pytest.mark.neural
def test_a_full_disk_keeps_the_checkpoint_before(place: TrainingDirectory) -> None:
    torch = pytest.importorskip("torch")
    place.save_checkpoint({"step": 3})
    with no_room(10_000), pytest.raises(UserError, match=r"checkpoint\.pt: cannot be written"):
        place.save_checkpoint({"step": 4, "model": torch.zeros(100_000)})
    assert place.load_checkpoint("cpu") == {"step": 3}


@pytest.mark.neural
def test_a_broken_checkpoint_is_named(place: TrainingDirectory) -> None:
    pytest.importorskip("torch")
    place.begin(SPEC, 5)
    file = place.folder / ".training" / "checkpoint.pt"
    file.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(DataError, match="cannot be read; remove its folder to start anew") as caught:
        place.load_checkpoint("cpu")
    assert caught.value.path == str(file)
