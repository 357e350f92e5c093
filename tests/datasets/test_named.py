"""Names of collections: hub:, irds:, and everything else is a folder."""

from pathlib import Path

import pytest

from ranktilt.datasets.load import load
from ranktilt.datasets.named import Named, read_name
from ranktilt.errors import UserError
from tests.toy import write_beir


@pytest.mark.parametrize(
    ("typed", "revision", "expected"),
    [
        ("hub:IR-Cocktail/scifact", None, Named("hub", "IR-Cocktail/scifact")),
        ("hub:IR-Cocktail/scifact/", None, Named("hub", "IR-Cocktail/scifact")),
        ("hub:a/b@v1", None, Named("hub", "a/b", "v1")),
        ("hub:a/b@refs/pr/1", None, Named("hub", "a/b", "refs/pr/1")),
        ("hub:a/b", "v1", Named("hub", "a/b", "v1")),
        (Path("irds:beir/scifact/test"), None, Named("irds", "beir/scifact/test")),
        ("some/folder", None, None),
        ("C:/folder", None, None),
        ("http://x", None, None),
    ],
)
def test_names_are_read(typed: str | Path, revision: str | None, expected: Named | None) -> None:
    assert read_name(typed, revision=revision) == expected


@pytest.mark.parametrize("name", ["hub:a/b", "hub:a/b@v1", "irds:beir/scifact/test"])
def test_a_name_is_written_as_it_is_typed(name: str) -> None:
    assert str(read_name(name)) == name


@pytest.mark.parametrize(
    ("typed", "revision", "message"),
    [
        ("hub:", None, "hub:: expected a name after the colon, such as hub:IR-Cocktail/scifact"),
        ("irds:/", None, "irds:/: expected a name after the colon, such as irds:beir/scifact/test"),
        ("hub:a/b@", None, "hub:a/b@: expected one revision after @, got none"),
        ("hub:a/b@v1", "v2", "hub:a/b@v1: expected one revision after @, got two"),
        ("irds:a", "v1", "irds:a: collections of ir_datasets have no revision; revisions are for hub:OWNER/NAME"),
        ("folder", "v1", "folder: a folder has no revision; revisions are for hub:OWNER/NAME"),
    ],
)
def test_what_cannot_be_a_name(typed: str, revision: str | None, message: str) -> None:
    with pytest.raises(UserError) as caught:
        read_name(typed, revision=revision)
    assert str(caught.value) == message


def test_a_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_beir(tmp_path / "hub:toy")
    assert load("hub:toy").ids.to_list() == ["d1", "d2", "d3"]
