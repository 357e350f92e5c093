"""No output of a command overwrites what says how another file was made."""

from pathlib import Path

from ranktilt.cli.output import check_paths, with_sidecars
from tests.refusals import refused
from tests.toy import write


def test_output_is_never_a_sidecar_of_another_file(tmp_path: Path) -> None:
    grades, run = tmp_path / "grades.qrels", write(tmp_path / "run.trec", "q Q0 d 1 1.0 t\n")
    beside = tmp_path / "grades.qrels.json"
    message = (
        f"--save-grades, its sidecar {beside}: this file is written by --json too; choose "
        "another file"
    )
    with refused(message):
        check_paths({"--json": beside, **with_sidecars({"--save-grades": grades})})
    check_paths({"--json": tmp_path / "run.trec.json"}, inputs=[run])
    write(tmp_path / "run.trec.json", "{}")
    with refused(
        f"--json {tmp_path / 'run.trec.json'}: this file is read too; choose another file"
    ):
        check_paths({"--json": tmp_path / "run.trec.json"}, inputs=[run])
