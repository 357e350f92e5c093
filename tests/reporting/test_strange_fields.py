"""Results whose hash is right and whose fields are strange: an error on the file, or a right
answer.
"""

import copy
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ranktilt import Audit, DataError, UserError, compare, gate, table
from ranktilt.data.artifact import Result, hash_values, names_files
from tests.refusals import refused
from tests.reporting.results import RESULTS, result

STRANGE: list[Any] = [None, "strange", -1, 10**18, 1e308, [], {}, [None], {"a": None}, True]
GONE = object()
KINDS = (
    "audit",
    "bench",
    "check",
    "citations",
    "citations, compared",
    "comparison",
    "ranks of runs",
    "context experiment",
    "attribution",
    "explained gaps",
    "factors",
    "gate",
    "judges",
    "judges, compared",
    "manipulation checks",
    "pairwise",
    "replayed log",
    "sequential",
    "sources",
    "training study",
    "check, every part",
)


def key_paths(content: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in parsed JSON, of a list the first element's."""
    if above:
        yield above
    parts: Iterable[tuple[str | int, Any]] = ()
    if isinstance(content, dict):
        parts = content.items()
    elif isinstance(content, list):
        parts = enumerate(content[:1])
    for key, value in parts:
        yield from key_paths(value, (*above, key))


def changed(content: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The content of a file with another value in a place, and the hash that belongs to it."""
    copied = copy.deepcopy(content)
    part: Any = copied
    for key in path[:-1]:
        part = part[key]
    if value is GONE:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return {**copied, "sha256": hash_values(copied)}


def saved(name: str) -> tuple[type[Result], dict[str, Any]]:
    case_result = result(name)
    case_result = getattr(case_result, "audit", case_result)
    content = json.loads(case_result.to_json())
    del content["sha256"]
    return type(case_result), content


@pytest.mark.parametrize("name", KINDS)
def test_strange_fields_are_an_error_on_the_file(name: str, tmp_path: Path) -> None:
    """Some of the places with a value each; the long test takes all."""
    kind, content = saved(name)
    cases = [(key_path, value) for key_path in key_paths(content) for value in (*STRANGE, GONE)]
    step = max(len(cases) // 15, 1)
    for number, (key_path, value) in enumerate(cases[::step]):
        assert "\n" not in refusal(
            kind, tmp_path / f"{number}.json", changed(content, key_path, value)
        )


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_every_strange_field_is_an_error_on_the_file(name: str, tmp_path: Path) -> None:
    kind, content = saved(name)
    for key_path in key_paths(content):
        for value in (*STRANGE, GONE):
            assert "\n" not in refusal(
                kind, tmp_path / "changed.json", changed(content, key_path, value)
            )


def refusal(kind: type[Result], path: Path, content: dict[str, Any]) -> str:
    """Load and print a result; return the message of its refusal, empty where it is printed."""
    path.write_text(json.dumps(content))
    try:
        loaded = kind.load(path)
        table(loaded)
        table(loaded, "csv")
    except UserError as error:
        return str(error)
    return ""


def test_the_file_is_named_wherever_the_result_is_used(tmp_path: Path) -> None:
    kind, content = saved("comparison")
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(changed(content, ("spec", "resamples"), GONE)))
    message = (
        f"{path}: is not a comparison that this RankTilt writes: KeyError: 'resamples'; "
        "run ranktilt compare again"
    )
    with refused(message, DataError):
        table(kind.load(path))


def test_functions_of_results_name_the_file(tmp_path: Path) -> None:
    command = names_files(lambda *audits: [audit.spec["strange"] for audit in audits])
    audit_of_case = result("audit")
    with pytest.raises(KeyError):
        command(audit_of_case)
    path = audit_of_case.save(tmp_path / "audit.json")
    with refused(
        f"{path}: is not an audit that this RankTilt writes: KeyError: 'strange'; run ranktilt "
        "audit again"
    ):
        command(Audit.load(path))
    for function in (compare, gate):
        assert function.__wrapped__


def test_named_part_that_is_missing_is_an_error_on_file(
    tmp_path: Path,
) -> None:
    kind, content = saved("bench")
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(changed(content, ("baseline_effects", 0, "estimand"), "RR")))
    with refused(f"{path}: …", DataError):
        table(kind.load(path))


def test_a_fault_of_a_result_that_was_in_no_file_passes() -> None:
    with pytest.raises(AttributeError):
        table(object.__new__(type(result("comparison"))))


def test_every_kind_is_tried() -> None:
    kinds = {type(getattr(result(name), "audit", result(name))) for name in RESULTS}
    tried = {type(getattr(result(name), "audit", result(name))) for name in KINDS}
    assert not {kind.__name__ for kind in kinds - tried if issubclass(kind, Result)}


def test_a_result_nested_too_deeply_was_changed(tmp_path: Path) -> None:
    kind, content = saved("audit")
    text = json.dumps({**content, "spec": {}, "sha256": "0"})
    path = tmp_path / "audit.json"
    path.write_text(text.replace('"spec": {}', '"spec": ' + '{"a":' * 900 + "1" + "}" * 900))
    with pytest.raises(DataError, match="was changed after ranktilt wrote it"):
        kind.load(path)
