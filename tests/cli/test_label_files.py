"""Labels as people have them: columns by other names, 0 and 1, JSON, a bare list of ids."""

from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.datasets.labels import LabelFile, labelled, read_labels, with_labels
from ranktilt.reporting.reload import reload
from tests.cli.conftest import Cli
from tests.refusals import refused
from tests.toy import toy, write, write_run

ROWS = '{"url": "a", "is_ai": 1}\n{"url": "b", "is_ai": 0}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv.gz", "url,text,is_ai,doc_id\na,x,1,7\nb,y,0,8\n"),
        ("l.tsv", "is_ai\turl\n1.0\ta\n0.0\tb\n"),
        ("l.jsonl.gz", ROWS),
    ],
)
def test_columns_are_named_by_what_they_hold_and_values_get_names(tmp_path: Path, name: str, content: str) -> None:
    labels = LabelFile.of(f"{write(tmp_path / name, content)}:id=url,source=is_ai")
    found = read_labels(LabelFile(labels.path, labels.columns, {"1": "ai"}))
    assert found.select("doc_id", "source").rows() == [("a", "ai"), ("b", "0")]


def test_truth_values_have_names_too(tmp_path: Path) -> None:
    path = tmp_path / "l.parquet"
    pl.DataFrame({"doc_id": ["a", "b"], "source": [True, None]}).write_parquet(path)
    assert read_labels(LabelFile(str(path), names={"True": "ai"})).rows() == [("a", "ai"), ("b", None)]
    content = '{"doc_id": "a", "source": true}\n{"doc_id": "b", "source": false}\n'
    file = str(write(tmp_path / "l:id=a.jsonl", content))  # a name, because it is a file's
    assert read_labels(LabelFile(LabelFile.of(file).path, names={"true": "ai"})).rows() == [("a", "ai"), ("b", "false")]


@pytest.mark.parametrize("header", ["", "docid\n"])
@pytest.mark.parametrize("name", ["ai.txt", "ai.tsv"])
def test_of_a_list_of_ids_all_others_are_the_rest(tmp_path: Path, name: str, header: str) -> None:
    file = write(tmp_path / name, f"{header}d1-llm\nd2-llm\n\nd3-llm\nelsewhere\n")
    found = with_labels(toy(), LabelFile(str(file), names={"listed": "llm"}, rest="human"), by="source")
    assert found == toy()
    assert found.spec["labels_read"] == "listed = llm; documents: 3 llm, 3 human (the rest)"


def test_a_run_and_a_list_are_audited_and_read_again(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(Path("engine.trec"), {"q1": {"x": 3.0, "y": 2.0, "z": 1.0}, "q2": {"y": 2.0, "x": 1.0}})
    write(Path("ai.csv"), "url,is_ai,note\ny,1,a\nw,1,b\n")
    start = ("audit", "--run", "engine.trec", "--groups", "ai.csv:id=url,source=is_ai", "--rest", "human")
    more = ("-m", "Share@1", "--resamples", "100", "--name", "1=an AI", "--json", "a.json")
    assert cli(*start, *more, "--reference", "an AI").code == 0
    turned = rt.Audit.load("a.json")
    code, out, _ = cli(*start, *more)
    assert code == 0
    note = "labels: id = url, source = is_ai; 1 = an AI; documents: 2 an AI, 2 human (the rest)"
    assert note in " ".join(out.split())
    found = rt.Audit.load("a.json")
    assert (found.pairs, turned.pairs) == ((("human", "an AI"),), (("an AI", "human"),))
    # Human text holds rank 1 and two of three places in q1, no first rank and one of two places in q2.
    share = next(e for e in found.estimates if repr(e.estimand) == "Share@1")
    assert share.value == pytest.approx(((1 - 2 / 3) + (0 - 1 / 2)) / 2)
    assert [e.value for e in found.estimates] == [-e.value for e in turned.estimates]
    again = reload(found).collection
    assert again is not None
    assert dict(again.docs.select("id", "source").iter_rows()) == {n: "human" if n in "xz" else "an AI" for n in "ywxz"}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (":id=uri", {}, "{}: unknown column 'uri'; did you mean 'url'? (valid: url, source)"),
        (":id=url", {"names": {"2": "x"}}, "unknown value of 'source' to name '2' (valid: 0, 1)"),
        (":id=url,source=url", {}, "{}:id=url,source=url: expected each column once, such as {}:id=url,source=is_ai"),
        (
            ":id=url",
            {},
            "engine.trec: no overlap: none of its 1 document is in {} (first: 'd'; its ids look like 'a')",
        ),
    ],
)
def test_what_cannot_be_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: dict[str, dict[str, str]], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(Path("l.csv"), "url,source\na,1\nb,0\n")
    runs = [rt.Run.load(write_run(Path("engine.trec"), {"q1": {"d": 1.0}}))]
    with refused(message.replace("{}", str(file)), rt.UserError):
        given = LabelFile.of(f"{file}{text}")
        labelled(LabelFile(given.path, given.columns, **options), runs)


def test_labels_that_contradict_sources_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "l.txt", "d1-human\n")
    message = "document 'd1-human' is 'listed' here and 'human' in the collection, which has sources of its own"
    with refused(f"{file}: {message}: leave --groups out, or call the column otherwise: --by COLUMN", rt.DataError):
        with_labels(toy(), LabelFile(str(file), rest="human"), by="source")
