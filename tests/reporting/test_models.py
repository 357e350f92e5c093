"""The model table as text, for models of the test's own."""

import csv
import io
import json
import re

import pytest

from ranktilt.errors import UserError
from ranktilt.models.catalogue import Model
from ranktilt.reporting.models import FORMATS, closing, model_text, models_table, show_models

FIRST = Model(
    name="one", kind="dense", hub="org/one", about="a retriever", licence="MIT", source="A, 2020", limit=128,
    pooling="cls", similarity="dot", query_prefix="query: ",
)  # fmt: skip
SECOND = Model(
    name="two", kind="monot5", hub="org/two", also=("org/2",), about="a re-ranker", licence="not stated",
    source="B, 2021", limit=1,
)  # fmt: skip
BODY = Model(
    name="two-body", kind="monot5", hub="org/body", about="a body", licence="MIT", source="C, 2022", tuned=False
)
LOST = Model(name="lost", kind="dense", hub="", about="none published", licence="not stated", source="D, 2023")
HERE = {"dense:one": "cache"}
OTHERS = [("alpha", "a-package 1.0"), ("beta", "b-package 2.0")]


def plain(*models: Model) -> list[list[str]]:
    """Rows of the plain table, split into cells at two blanks or more."""
    lines = models_table(models, HERE, []).splitlines()
    return [
        [cell.strip() for cell in line.split("   ") if cell.strip()] for line in lines if ":" in line.split("  ")[0]
    ]


def test_a_row_a_model() -> None:
    found = plain(FIRST, SECOND, BODY, LOST)
    assert found[:4] == [
        ["dense:one", "a retriever", "yes", "cache", "cls", "dot", "128", "MIT", "org/one"],
        ["monot5:two", "a re-ranker", "yes", "–", "–", "–", "1", "not stated", "org/two"],
        ["monot5:two-body", "a body", "body", "–", "–", "–", "–", "MIT", "org/body"],
        ["dense:lost", "none published", "yes", "–", "–", "–", "–", "not stated", "–"],
    ]


def test_kinds_stand_apart() -> None:
    lines = models_table([FIRST, SECOND, BODY], {}, []).splitlines()
    at = {line.split("  ")[0].strip(): number for number, line in enumerate(lines)}
    assert lines[at["dense:one"] + 1].strip() == ""
    assert at["monot5:two-body"] == at["monot5:two"] + 1


def test_below_it_stands_how_a_model_is_named_and_what_else_is_installed() -> None:
    lines = models_table([FIRST], {}, OTHERS).splitlines()
    assert lines[-3:] == closing(OTHERS)
    assert lines[-1] == "Rankers of other packages: alpha (a-package 1.0), beta (b-package 2.0)."
    assert closing([])[-1] == "Rankers of other packages: none installed."


def test_notes_can_be_left_out() -> None:
    buffer = io.StringIO()
    show_models([FIRST], {}, OTHERS, buffer, notes=False)
    assert "alpha" not in buffer.getvalue()
    assert "dense:one" in buffer.getvalue()


class Terminal(io.StringIO):
    """A terminal, as far as the code can tell."""

    def isatty(self) -> bool:
        return True


def test_a_narrow_terminal_gets_two_tables_without_a_line_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "72", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    buffer = Terminal()
    show_models([FIRST, SECOND, BODY], HERE, [], buffer, terminal=buffer)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", buffer.getvalue()).splitlines()
    assert max(map(len, lines)) <= 72
    assert [line.split() for line in lines if line.strip().startswith("typed")] == [
        ["typed", "what", "it", "is", "tuned", "here"],
        ["typed", "pooling", "similarity", "tokens", "licence"],
    ]
    assert "org/one" not in buffer.getvalue()


def test_csv_holds_every_field() -> None:
    rows = list(csv.DictReader(io.StringIO(models_table([FIRST, SECOND], HERE, [], format="csv"))))
    assert rows[0] == {
        "spec": "dense:one", "name": "one", "kind": "dense", "hub": "org/one", "about": "a retriever",
        "licence": "MIT", "source": "A, 2020", "limit": "128", "pooling": "cls", "similarity": "dot",
        "query_prefix": "query: ", "document_prefix": "", "tuned": "true", "also": "", "here": "cache",
    }  # fmt: skip
    assert (rows[1]["also"], rows[1]["here"], rows[1]["pooling"]) == ("org/2", "", "")


def test_json_holds_models_and_rankers() -> None:
    content = json.loads(models_table([SECOND], HERE, OTHERS, format="json"))
    assert content["rankers"][1] == {"name": "beta", "package": "b-package 2.0"}
    (only,) = content["models"]
    assert (only["spec"], only["also"], only["here"], only["limit"], only["tuned"]) == (
        "monot5:two", ["org/2"], None, 1, True,
    )  # fmt: skip


def test_markdown_is_a_table_and_a_list() -> None:
    lines = models_table([FIRST, BODY], HERE, OTHERS, format="markdown").splitlines()
    assert (
        lines[0] == "| typed | what it is | tuned | here | pooling | similarity | tokens | licence | name on the hub |"
    )
    assert lines[1] == "| --- | --- | --- | --- | --- | --- | ---: | --- | --- |"
    assert lines[2] == "| dense:one | a retriever | yes | cache | cls | dot | 128 | MIT | org/one |"
    assert lines[-1] == "- Rankers of other packages: alpha (a-package 1.0), beta (b-package 2.0)."


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_ends_with_one_line_end(form: str) -> None:
    text = models_table([FIRST], {}, [], format=form)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(
        UserError, match=r"^unknown format 'cvs'; did you mean 'csv'\? \(valid: table, markdown, csv, json\)$"
    ):
        models_table([FIRST], {}, [], format="cvs")


def shown(one: Model, here: str | None = None) -> dict[str, str]:
    """Entries of one model in full."""
    first, *rest = model_text(one, here).splitlines()
    assert first == one.spec
    wide = max(len(line[2:].split("  ")[0]) for line in rest)
    return {line[2 : 2 + wide].strip(): line[4 + wide :] for line in rest}


def test_a_retriever_in_full() -> None:
    assert shown(FIRST, "cache") == {
        "what it is": "a retriever", "from": "org/one", "source": "A, 2020", "licence": "MIT",
        "reads": "128 tokens of a text", "pooling": "cls", "similarity": "dot", "prefixes": "query 'query: '",
        "tuned": "yes, it ranks as it is", "here": "cache", "typed": "-r dense:one",
    }  # fmt: skip


def test_a_re_ranker_in_full() -> None:
    found = shown(SECOND)
    assert found["from"] == "org/two (also org/2)"
    assert found["reads"] == "1 token of query and document together"
    assert (found["pooling"], found["similarity"], found["prefixes"]) == ("–", "–", "none")
    assert found["here"] == "no, fetched from the hub when first used"
    assert found["typed"] == '-r "bm25@100>>monot5:two"'


def test_a_body_in_full() -> None:
    found = shown(BODY)
    assert found["reads"] == "as many tokens as its files say"
    assert found["tuned"] == "no, a body: train it before it ranks"
    assert found["typed"] == 'ranktilt train monot5 DIR --from org/body -o FOLDER, then -r "bm25@100>>monot5:FOLDER"'


def test_a_model_without_a_checkpoint_in_full() -> None:
    found = shown(LOST)
    assert (found["from"], found["here"]) == ("no published checkpoint", "no")
    assert found["typed"] == "-r dense:FOLDER, with your checkpoint in FOLDER"
