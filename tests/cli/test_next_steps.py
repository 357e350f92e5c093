"""What commands suggest to do next runs as printed, and commands in messages can be read."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ranktilt
from ranktilt.cli.tree import Command, commands, parse
from tests.cli.conftest import Cli
from tests.toy import write, write_beir, write_run

COUNT = 24
WORDS = {"human": 1, "ai": 3, "gpt": 2}
"""How often each source's text names its topic: BM25 favours the more often."""


def documents(*sources: str, origin: bool = True) -> list[dict[str, Any]]:
    rows = [
        {
            "_id": f"d{number}-{source}",
            "text": " ".join(
                [f"topic{number}"] * WORDS[source] + [f"{source}{n}" for n in range(9)]
            )
            + " plain.",
            "source": source,
            "origin": f"d{number}",
            "gender": "fm"[number % 2],
        }
        for number in range(COUNT)
        for source in sources
    ]
    return (
        rows
        if origin
        else [{key: value for key, value in row.items() if key != "origin"} for row in rows]
    )


def write_folder(
    folder: Path, docs: list[dict[str, Any]], unknown: str | None = None, split: str = "test"
) -> Path:
    qrels = [(f"q{row['_id'][1:].partition('-')[0]}", str(row["_id"]), 1) for row in docs]
    qrels += [("q0", unknown, 1)] if unknown else []
    queries = [{"_id": f"q{number}", "text": f"topic{number} plain"} for number in range(COUNT)]
    return write_beir(folder, docs=docs, queries=queries, qrels=qrels, split=split)


def write_lists(path: Path, *, even: bool = False) -> Path:
    """Write a run in which the text of ai stands above its twin: in every list, or in every other
    one.
    """
    lists = dict[str, dict[str, float]]()
    for number in range(COUNT):
        order = ["human", "ai"] if even and number % 2 else ["ai", "human"]
        ids = [f"d{(number + shift) % COUNT}-{source}" for shift in range(3) for source in order]
        lists[f"q{number}"] = {name: 100.0 - rank for rank, name in enumerate(ids)}
    return write_run(path, lists)


def word_count(document: str) -> int:
    number, _, source = document[1:].partition("-")
    return WORDS[source] + int(number) % 5


def write_word_run(path: Path) -> Path:
    """Write a run whose scores rise with the words of a document, but for a little."""
    lists = dict[str, dict[str, float]]()
    for number in range(COUNT):
        names = [
            f"d{(number + shift) % COUNT}-{source}"
            for shift in range(8)
            for source in ("human", "ai")
        ]
        lists[f"q{number}"] = {
            name: word_count(name) + (number + 3 * rank) % 7 / 10 for rank, name in enumerate(names)
        }
    return write_run(path, lists)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with collections, runs and labels."""
    monkeypatch.chdir(tmp_path)
    twins = documents("human", "ai")
    write_folder(tmp_path / "twins", twins)
    sparse = [{**row, "text": row["text"].replace("plain", "sparse")} for row in twins]
    write_folder(tmp_path / "sparse", sparse)  # of which a ranking holds two, 24 pairs in all
    write_folder(tmp_path / "two splits", twins)
    write_folder(tmp_path / "two splits", twins, split="dev")
    write_folder(tmp_path / "unknown", twins, unknown="nowhere")
    write_folder(tmp_path / "alone", documents("human", "ai", origin=False))
    write_folder(tmp_path / "three", documents("human", "ai", "gpt"))
    write_folder(tmp_path / "lone", documents("human"))
    write_lists(tmp_path / "run.trec")
    write_lists(tmp_path / "even.trec", even=True)
    rows = [[row["_id"], row["source"], row["origin"], row["gender"]] for row in twins]
    write(
        tmp_path / "labels.csv",
        "\n".join(["doc_id,source,origin,gender", *map(",".join, rows), ""]),
    )
    write(
        tmp_path / "bare.csv",
        "\n".join(["doc_id,source,gender", *(f"{a},{b},{d}" for a, b, _, d in rows), ""]),
    )
    coded = [f"{a},{int(b == 'ai')},{c},{word_count(a)}" for a, b, c, _ in rows]
    write(tmp_path / "coded.csv", "\n".join(["doc_id,is_ai,origin,words", *coded, ""]))
    write_word_run(tmp_path / "words.trec")
    lines = (tmp_path / "even.trec").read_text().splitlines(keepends=True)
    write(tmp_path / "short.trec", "".join(lines[: len(lines) // 2]))
    write(tmp_path / "qrels.txt", "".join(f"q{row[2][1:]} 0 {row[0]} 1\n" for row in rows))
    return tmp_path


def suggested(printed: str) -> list[list[str]]:
    """Return the commands behind ``Next:`` and ``Audit it:``, as words."""
    lines = re.findall(r"^(?:Next|Audit it): .*$", printed, flags=re.MULTILINE)
    commands = list[list[str]]()
    for line in lines:
        commands += [shlex.split(text) for text in line[line.index("ranktilt ") :].split(" && ")]
    return commands


QUICK = "--set statistics.resamples=100"
CASES = [
    ("audit twins -r bm25 -m nDCG@10", ["explain", "mitigate", "audit", "gate"]),
    ("audit sparse -r bm25 -m nDCG@10", ["audit", "mitigate", "audit", "gate"]),
    ("audit 'two splits' -r bm25 --split dev", ["explain", "mitigate", "audit", "gate"]),
    ("audit unknown -r bm25 --ignore-unknown", ["explain", "mitigate", "audit", "gate"]),
    ("audit alone -r bm25 -m nDCG@10", ["check", "mitigate", "audit", "gate"]),
    ("audit alone -r bm25 --by gender", None),
    ("audit three -r bm25 -m nDCG@10", None),
    ("audit three -r bm25 --mixed", None),
    ("audit three -r bm25 --pair human,rest", None),
    ("audit three --run run.trec --pair human,ai", None),
    ("audit lone -r bm25 --by none", []),
    ("audit lone -r bm25 --by gender", None),
    ("audit twins --groups labels.csv -r bm25", ["audit", "mitigate", "audit", "gate"]),
    (
        "audit twins -r bm25 --card --primary RankGap --margin '0.5 ranks'",
        ["explain", "audit", "gate"],
    ),
    ("audit twins --run even.trec -m nDCG@10", None),
    ("audit --run run.trec --score-order rank --groups labels.csv", ["mitigate", "audit", "gate"]),
    ("audit lone --groups bare.csv --by gender -r bm25", None),
    (
        "audit --run run.trec --groups labels.csv --qrels qrels.txt",
        ["audit", "mitigate", "audit", "gate"],
    ),
    ("audit --run run.trec --groups bare.csv --qrels qrels.txt", None),
    ("audit --run even.trec --groups bare.csv --qrels qrels.txt", None),
    ("audit --run even.trec --groups bare.csv --by gender", None),
    ("audit --run run.trec --groups bare.csv", None),
    ("mitigate twins -r bm25 --method offset --strength 1", None),
    ("explain twins --probe overlap", None),
    ("check twins", ["audit", "check"]),
]


# Those that level at several strengths take seconds each.
SLOW = (
    "audit --run run.trec --score-order rank --groups labels.csv",
    "audit twins -r bm25 -m nDCG@10",
    "audit three -r bm25",
    "audit sparse",
    "audit 'two splits'",
    "audit unknown",
)


@pytest.mark.parametrize(
    ("command", "verbs"),
    [
        pytest.param(*case, marks=[pytest.mark.long] if case[0].startswith(SLOW) else [])
        for case in CASES
    ],
    ids=[command for command, _ in CASES],
)
def test_every_step_runs_as_printed(
    cli: Cli, here: Path, command: str, verbs: list[str] | None
) -> None:
    words = shlex.split(command)
    quick = shlex.split(QUICK) if words[0] in ("audit", "mitigate") else []
    code, out, err = cli(*words, *quick)
    assert code in (0, 1), err
    steps = suggested(out + "\n" + err)
    assert verbs is None or [step[1] for step in steps] == verbs
    for step in steps:
        more = quick if step[1] in ("audit", "mitigate", "gate") and "--set" not in step else []
        code, _, err = cli(*step[1:], *more)
        assert code in (0, 1, 3), f"{shlex.join(step)}: {err}"


CODED = "--groups coded.csv:source=is_ai --name 1=ai --name 0=human"
CHAINS = [
    # What is explained goes by a column other than the one whose values are named.
    ([f"explain --run words.trec {CODED} --attribution"], "--by words"),
    (
        [
            f"audit --run run.trec {CODED} --json old.json",
            f"audit --run short.trec {CODED} --json new.json",
            "compare new.json old.json --max-left-out 60",
        ],
        "--max-left-out 60",
    ),
    ([f"audit --run lex=run.trec {CODED}"], "mitigate --run lex=run.trec"),
    ([f"audit --run run.trec {CODED}"], "--save-run mitigated.trec"),
    (["audit twins -r bm25 -m nDCG@10"], "--save-ranker mitigated"),
    (
        [f"audit --run even.trec {CODED} --json a.json", "gate a.json --max-tilt 100"],
        "--json a.json && ranktilt gate a.json --max-tilt 100",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("before", "words"), CHAINS, ids=[words for _, words in CHAINS])
def test_steps_carry_what_they_need_to_run(
    cli: Cli, here: Path, before: list[str], words: str
) -> None:
    for command in before:
        code, out, err = cli(*shlex.split(command))
        assert code in (0, 1), err
    lines = re.findall(r"^Next: .*$", out + "\n" + err, flags=re.MULTILINE)
    assert any(words in line for line in lines), lines
    for step in suggested(out + "\n" + err):
        code, _, err = cli(*step[1:])
        assert code in (0, 1, 3), f"{shlex.join(step)}: {err}"


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        ("rank twins -r bm25 -o out.trec", ["audit twins --run out.trec"]),
        ("rank lone -r bm25 -o out.trec", ["audit lone --run out.trec --by none"]),
        ("rank lone -r bm25 -o out.trec --qrels none", []),
        ("data load twins -o 'a copy'", ["check 'a copy'"]),
        ("data load lone -o copy", []),
    ],
)
def test_next_step_after_rank_and_load(
    cli: Cli, here: Path, command: str, steps: list[str]
) -> None:
    code, _, err = cli(*shlex.split(command))
    assert (code, [shlex.join(words[1:]) for words in suggested(err)]) == (0, steps)
    for step in steps:
        assert cli(*shlex.split(step)).code in (0, 1)


# Commands in messages

COMMANDS = {command.path: command for command in commands()}
GROUPS = {path[:-1] for path in COMMANDS}
MACHINE = {"--device", "--executor", "--help", "--memory", "--quiet", "--set", "--threads"}


def messages() -> Iterator[tuple[str, str]]:
    """Every text of the package, as its place and itself; what is computed is X."""
    for path in sorted(Path(ranktilt.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    part.value if isinstance(part, ast.Constant) else "X" for part in node.values
                ]
                yield f"{path.name}:{node.lineno}", "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.name}:{node.lineno}", node.value


def command_words(text: str) -> tuple[Command | None, list[str]]:
    """Return the command that a text begins with, and the arguments and options behind it that
    belong to it.
    """
    path, words = (), text.split()
    while words and path in GROUPS:
        word = words.pop(0)
        name = re.sub(r"[^\w-].*", "", word)
        if name == "X":
            return None, []  # which of them is computed
        path = (*path, name)
        if name != word:
            words = []
    if path in GROUPS:
        return None, []
    command, taken, takes_value = COMMANDS[path], list[str](), False
    flags = {name for option in command.options for name in option.names if option.hint is bool}
    for word in words:
        bare = word.rstrip(",.;:)`")
        if not (takes_value or bare.startswith("-") or re.fullmatch(r"[A-Z]+(\.\w+)?", bare)):
            break
        taken.append(bare)
        takes_value = bare.startswith("-") and bare not in flags
        if bare != word:
            break
    return command, taken


def test_commands_in_messages_can_be_read() -> None:
    mentioned = [
        (source, match[1])
        for source, text in messages()
        for match in re.finditer(
            r"\branktilt "
            r"((?:audit|check|compare|gate|data|explain|generate|judge|mitigate|pairwise|rank"
            r"|report|study|tools|train)\b[^\n]*)",
            text,
        )
    ]
    assert len(mentioned) > 40
    for source, text in mentioned:
        command, words = command_words(text)
        options = [word for word in words if word.startswith("-")]
        options_of_command = command.options if command else []
        known = MACHINE | {name for option in options_of_command for name in option.names}
        assert set(options) <= known, f"{source}: {sorted(set(options) - known)} of ranktilt {text}"
        # One that names what it reads is whole, and can be typed once its capitals are filled in.
        # X, what is computed, may be any number of words.
        if any(word.isupper() and not word.startswith("-") for word in words) and "X" not in words:
            assert command is not None
            parse([*command.path, *words])
