"""ranktilt audit by a column of numbers."""

from __future__ import annotations

from pathlib import Path

from tests.auditing.test_property_audit import popular_collection, popular_documents, ranked
from tests.cli.conftest import Cli


def files_of(folder: Path) -> list[str]:
    docs = popular_documents().rename({"id": "doc_id"}).drop("text")
    docs.write_csv(folder / "labels.csv")
    ranked(popular_collection(), 0.5).save(folder / "run.trec")
    return ["--groups", str(folder / "labels.csv"), "--run", str(folder / "run.trec")]


def test_column_of_numbers_is_audited(cli: Cli, tmp_path: Path) -> None:
    words = [*files_of(tmp_path), "--by", "popularity", "--set", "statistics.resamples=500"]
    code, out, err = cli("audit", *words, "--json", tmp_path / "audit.json")
    assert code == 0, err
    assert "favours high-popularity documents" in out
    assert f"gate {tmp_path / 'audit.json'} --max-tilt '0.2 sd'" in out
    assert "--by popularity:2 makes two bins" in out + err
    assert cli("gate", tmp_path / "audit.json", "--max-tilt", "0.2 sd").code == 1


def test_reference_needs_groups(cli: Cli, tmp_path: Path) -> None:
    code, _, err = cli("audit", *files_of(tmp_path), "--by", "popularity", "--reference", "high")
    assert code == 2
    assert "--reference needs groups, but popularity is a column of numbers" in err
