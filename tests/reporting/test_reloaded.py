"""Pages of results that were read back are, byte for byte, those of the results themselves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ranktilt.auditing.study import Study
from ranktilt.probes.validation import Validation
from ranktilt.reporting.output import FORMATS, table
from tests.probes.validations import toy_validation
from tests.reporting.screen import html
from tests.reporting.studies import timeless_study, toy_study

NAMES = [("human", "llm"), ("human",), ("human", "llm-0.2", "llm-0.6")]


@pytest.mark.parametrize("names", NAMES, ids=len)
@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_the_page_of_a_validation(names: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    found = toy_validation(names)
    assert html(Validation.load(found.save(tmp_path / f"v.{suffix}"))) == html(found)


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_validation_prints(form: str, tmp_path: Path) -> None:
    found = toy_validation()
    assert table(Validation.load(found.save(tmp_path / "v.json")), form) == table(found, form)


@pytest.mark.parametrize("make", [toy_study, timeless_study])
@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_the_page_of_a_study(make: Callable[[], Study], suffix: str, tmp_path: Path) -> None:
    found = make()
    assert html(Study.load(found.save(tmp_path / f"s.{suffix}"))) == html(found)
