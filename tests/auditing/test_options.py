"""What the specs of runs say."""

from ranktilt.auditing.options import files_of_runs


def test_files_of_candidates_are_files_of_runs() -> None:
    specs = [{"file": "a"}, {"candidates": {"ranker": "x", "candidates": {"file": "b"}}}, {"file": "a"}, {}, None]
    assert files_of_runs(specs) == ["a", "b"]
