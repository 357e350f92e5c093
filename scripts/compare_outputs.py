"""Run the same commands with two source trees, and show every difference.

What they print and what they write is compared.

    python scripts/compare_outputs.py BEFORE AFTER                    # two checkouts
python scripts/compare_outputs.py BEFORE --save RECORDED          # keep what the older one gives
    python scripts/compare_outputs.py AFTER --against RECORDED        # later, at half the cost
python scripts/compare_outputs.py AFTER --against RECORDED --only errors --expected differences.txt

Every command of `scripts/compared_commands.txt` runs as a process of its own, each of its sections
in a fresh folder with an empty cache. Exit code, stdout, stderr and every file that it made or
changed are compared, after what differs from run to run (paths, versions, dates, times, hashes) has
been replaced. A file of expected differences holds lines `PATTERN: reason`, such as
`audit-table/audit.json: the new format` or `help-*/stdout: plainer English`. Exit code 1 if
anything else differs.
"""

import argparse
import base64
import concurrent.futures
import fnmatch
import gzip
import hashlib
import html.parser
import http.server
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = Path(__file__).with_name("compared_commands.txt")
SECONDS = 300
SHOWN = 60
DIGITS = 12
VOLATILE = {"seconds", "created", "started", "finished", "written", "python"}
"""Fields of JSON files that differ from run to run."""
PATTERNS = (
    (
        re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
        "<date>",
    ),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:s|ms|min|seconds?)\b(?! of)"), "<time>"),
    (re.compile(r"(?<=\btime=\")[\d.]+"), "<time>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b"), "<hash>"),
    (
        re.compile(r"\b[\d.]+ kB|(?<=\"bytes\": )\d+"),
        "<size>",
    ),  # a database's file grows by its own rules
    (re.compile(r"^.*: [\d.]+ %, about [\d:]+ left\n", re.MULTILINE), ""),
)


@dataclass(frozen=True)
class Command:
    """One command line: its section, its name there, and its words."""

    section: str
    name: str
    line: str


@dataclass(frozen=True)
class Tree:
    """A checkout, and where the shared data sets are."""

    checkout: Path
    data: Path

    @property
    def version(self) -> str:
        """The version that its outputs name."""
        text = (self.checkout / "src" / "ranktilt" / "_version.py").read_text(encoding="utf-8")
        return re.findall(r'"([^"]+)"', text)[-1]


def commands(text: str) -> list[Command]:
    """Read the list of commands: `[section]` headings, and lines `name: words`.

    A line that starts with # is a comment.
    """
    section, sections = "", []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line.strip() and not line.startswith("#"):
            name, _, words = line.partition(": ")
            sections.append(Command(section, f"{section}-{name}", " ".join(words.split())))
    return sections


# -----------------------------------------------------------------------------------------------
# what commands need


def prepare(folder: Path, tree: Tree, environment: dict[str, str]) -> None:
    """Put into a section's folder what its commands name.

    These are the bundled collection, variants of it, and shared data.
    """
    code = "import ranktilt as rt; rt.save(rt.bundled(), 'bundled')"
    subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, check=True, capture_output=True
    )
    if tree.data.is_dir():
        (folder / "data").symlink_to(tree.data)
    rows = [
        json.loads(line) for line in (folder / "bundled" / "corpus.jsonl").read_text().splitlines()
    ]
    _write_temperatures(folder / "hot", rows)
    _write_labels(folder, rows)
    (folder / "broken").mkdir()
    (folder / "broken" / "corpus.jsonl").write_text(
        '{"_id": "a", "text": "one"}\n{"_id": "b", "text": \n'
    )
    (folder / "broken" / "queries.jsonl").write_text('{"_id": "q", "text": "one"}\n')
    (folder / "not-an-audit.json").write_text('{"format": "something else"}\n')
    (folder / "bad.trec").write_text("q001 Q0 numpy.blackman-human 1 high tag\n")


def _write_temperatures(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write a collection of five sources.

    They are human text, and rewrites at four temperatures that lose more and more.
    """
    (folder / "corpus").mkdir(parents=True)
    texts: dict[str, list[dict[str, Any]]] = {
        f"llm-tmp{t}": [] for t in ("0.2", "0.5", "0.7", "1.0")
    }
    texts["human"] = []
    for row in rows:
        bare = {
            "_id": row["origin"].removesuffix("-human"),
            "title": row["title"],
            "text": row["text"],
        }
        if row["source"] == "human":
            texts["human"].append(bare)
            continue
        words = row["text"].split()
        for source, every in (
            ("llm-tmp0.2", 0),
            ("llm-tmp0.5", 7),
            ("llm-tmp0.7", 4),
            ("llm-tmp1.0", 2),
        ):
            left = [word for i, word in enumerate(words) if not every or i % every]
            texts[source].append({**bare, "text": " ".join(left)})
    for source, documents in texts.items():
        lines = "".join(json.dumps(document) + "\n" for document in documents)
        (folder / "corpus" / f"{source}.jsonl").write_text(lines)
    (folder / "queries.jsonl").write_bytes(
        (folder.parent / "bundled" / "queries.jsonl").read_bytes()
    )
    judged = (
        (folder.parent / "bundled" / "qrels" / "test.tsv").read_text().splitlines(keepends=True)
    )
    (folder / "qrels").mkdir()
    human = [line.replace("-human\t", "\t") for line in judged if "-human\t" in line]
    (folder / "qrels" / "test.tsv").write_text("".join([judged[0], *human]))


def _write_labels(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write tables of labels.

    One has the bundled collection's sources, one whether a DL 2019 candidate is long.
    """
    lines = [f"{row['_id']}\t{row['source']}\t{row['origin']}\n" for row in rows]
    (folder / "labels.tsv").write_text("doc_id\tsource\torigin\n" + "".join(lines))
    candidates = folder / "data" / "dl19" / "candidates-bm25.json"
    if candidates.exists():
        kinds = {
            str(hit["docid"]): "long" if len(hit["content"]) > 350 else "short"
            for topic in json.loads(candidates.read_text(encoding="utf-8"))
            for hit in topic["hits"]
        }
        table = "".join(f"{name}\t{label}\n" for name, label in kinds.items())
        (folder / "lengths.tsv").write_text("doc_id\tsource\n" + table)


class _Answers(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible server that answers every prompt by a fixed rule.

    It exchanges words two by two.
    """

    def do_POST(self) -> None:
        """Answer one chat request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = request["messages"][-1]["content"].rpartition("\n\n")[2].split()
        swapped = [word for i in range(0, len(words), 2) for word in words[i : i + 2][::-1]]
        message = {"role": "assistant", "content": " ".join(swapped) + "."}
        usage = {
            "prompt_tokens": len(words),
            "completion_tokens": len(words),
            "total_tokens": 2 * len(words),
        }
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"]}
        answer = json.dumps({**body, "choices": choices, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing on stderr."""


@contextmanager
def answering() -> Iterator[str]:
    """Run the server as long as needed; give its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


# --------------------------------------------------------------------------------------------------
# running


def run_section(section: Sequence[Command], tree: Tree) -> dict[str, str]:
    """Run the commands of one section in order in a fresh folder.

    Return all that they left by `COMMAND/PART`.
    """
    with tempfile.TemporaryDirectory(prefix="compare-") as name, answering() as server:
        folder = Path(name).resolve() / "work"
        folder.mkdir()
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("RANKTILT_")},
            "PYTHONPATH": str(tree.checkout / "src"),
            "RANKTILT_CACHE": str(folder.parent / "cache"),
            "COLUMNS": "118",
            "HF_HUB_OFFLINE": "1",
            "NO_COLOR": "1",
            "SOURCE_DATE_EPOCH": "0",
            "OPENAI_API_KEY": "none",
        }
        prepare(folder, tree, environment)
        replaced = {
            str(folder.parent): "<work>",
            str(tree.checkout): "<checkout>",
            str(tree.data): "<data>",
            tree.version: "<version>",
        }
        outputs = {}
        for command in section:
            before = _files(folder)
            words = shlex.split(command.line.replace("{SERVER}", server))
            code = "from ranktilt.cli.main import main; main()"
            done = subprocess.run(
                [sys.executable, "-c", code, *words],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=SECONDS,
                encoding="utf-8",
                errors="replace",
            )
            outputs[f"{command.name}/exit"] = f"$ ranktilt {command.line}\nexit {done.returncode}\n"
            outputs[f"{command.name}/stdout"] = normalised(done.stdout, replaced)
            outputs[f"{command.name}/stderr"] = normalised(done.stderr, replaced)
            written = [path for path, state in _files(folder).items() if before.get(path) != state]
            outputs |= {
                f"{command.name}/{path.relative_to(folder)}": content(path, replaced)
                for path in sorted(written)
            }
    return outputs


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """Every file below a folder, with what tells whether it was written."""
    files = [
        path for path in folder.rglob("*") if path.is_file()
    ]  # links to folders are not followed
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def run(tree: Tree, chosen: Sequence[Command], jobs: int) -> dict[str, str]:
    """Run all the commands, some sections at a time.

    Return all that they left by `COMMAND/PART`.
    """
    sections = [
        list(group) for _, group in itertools.groupby(chosen, key=lambda command: command.section)
    ]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = pool.map(lambda section: run_section(section, tree), sections)
        return {name: text for part in parts for name, text in part.items()}


# --------------------------------------------------------------------------------------------------
# normalising


def normalised(text: str, replaced: dict[str, str]) -> str:
    """Replace what differs from run to run."""
    for old, new in sorted(replaced.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(old, new)
    for pattern, new in PATTERNS:
        text = pattern.sub(new, text)
    return text if text.endswith("\n") or not text else text + "\n"


def content(path: Path, replaced: dict[str, str]) -> str:
    """Return a file as lines that can be compared.

    JSON laid out, pages without scripts, the rest of it as a hash.
    """
    data = path.read_bytes()
    if path.suffix == ".gz":
        data, path = gzip.decompress(data), path.with_suffix("")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{len(data)} bytes, {_short_hash(data)}\n" if path.suffix == ".npy" else "binary\n"
    if path.suffix == ".json":
        text = laid_out(text)
    elif path.suffix == ".html":
        text = page(text)
    return normalised(text, replaced)


def _short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def laid_out(text: str) -> str:
    """Lay JSON out with keys sorted and floats to twelve digits.

    Fields that differ from run to run are left open.
    """
    content = json.loads(text)
    if isinstance(content, dict):
        content.pop("sha256", None)  # a result's, of all its bytes
    return json.dumps(_plain(content), indent=1, sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "<volatile>" if key in VOLATILE else _plain(member)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


class _Page(html.parser.HTMLParser):
    """Tags and texts of a page, one a line; data blocks laid out, programs and styles left out."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.skipping = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag with its attributes."""
        values = dict(attrs)
        attributes = "".join(
            f" {key}={re.sub(r'base64,.*', 'base64', value or '')!r}"
            for key, value in sorted(values.items())
        )
        self.lines.append(f"<{tag}{attributes}>")
        if tag in ("script", "style"):
            engine = values.get("id") == "engine"
            self.skipping = "code" if engine else values.get("type") or "code"

    def handle_endtag(self, tag: str) -> None:
        """End what is left out."""
        self.skipping = ""

    def handle_data(self, data: str) -> None:
        """Note a text, or a data block."""
        if self.skipping == "application/json":
            self.lines.append(laid_out(data))
        elif self.skipping == "application/octet-stream":
            packed = gzip.decompress(base64.b64decode(data))
            self.lines.append(f"{len(packed)} bytes, {_short_hash(packed)}")
        elif not self.skipping and data.strip():
            self.lines.append(" ".join(data.split()))


def page(text: str) -> str:
    """Return what a page says and shows, one tag or text a line."""
    parser = _Page()
    parser.feed(text)
    return "\n".join(parser.lines)


# --------------------------------------------------------------------------------------------------
# comparing


def difference(old: str, new: str, name: str) -> list[str]:
    """Return the unified diff of two texts, cut after some lines; empty where they are equal."""
    if old == new:
        return []
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / side for side in ("before", "after")]
        for file, text in zip(files, (old, new), strict=True):
            file.write_text(text, encoding="utf-8")
        labels = ["--label", f"before/{name}", "--label", f"after/{name}"]
        done = subprocess.run(
            ["diff", "-u", *labels, *files], capture_output=True, text=True, check=False
        )
    lines = done.stdout.splitlines()
    more = [f"... {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
    return [line[:400] for line in lines[:SHOWN]] + more


def expected(path: Path | None) -> dict[str, str]:
    """Read the expected differences: reasons by pattern."""
    lines = path.read_text(encoding="utf-8").splitlines() if path else []
    pairs = [line.partition(": ") for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in pairs}


def compare(
    old: dict[str, str], new: dict[str, str], reasons: dict[str, str]
) -> tuple[list[str], int]:
    """Return the report's lines, and how many differences nobody expected."""
    lines, surprises, expected_differences = [], 0, dict.fromkeys(reasons, 0)
    for name in sorted(old.keys() | new.keys()):
        change = difference(old.get(name, ""), new.get(name, ""), name)
        pattern = next((pattern for pattern in reasons if fnmatch.fnmatchcase(name, pattern)), None)
        if change and pattern is not None:
            expected_differences[pattern] += 1
        elif change:
            surprises += 1
            lines += [*change, ""]
    lines += [
        f"expected: {count} × {pattern}: {reasons[pattern]}"
        for pattern, count in expected_differences.items()
    ]
    commands = len({name.partition("/")[0] for name in new})
    counted = f"{commands} commands, {len(new)} outputs: {surprises} differ unexpectedly"
    return [*lines, f"{counted}, {sum(expected_differences.values())} as expected"], surprises


def save(outputs: dict[str, str], folder: Path) -> None:
    """Keep outputs in a folder: one JSON file a command."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, parts in itertools.groupby(sorted(outputs), key=lambda key: key.partition("/")[0]):
        text = json.dumps({part: outputs[part] for part in parts}, indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def load(folder: Path) -> dict[str, str]:
    """Read outputs that were kept."""
    files = sorted(folder.glob("*.json"))
    return {
        name: text
        for file in files
        for name, text in json.loads(file.read_text(encoding="utf-8")).items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run, compare and report; exit code 1 if anything differs that is not expected."""
    parser = argparse.ArgumentParser(description="Compare what two checkouts print and write.")
    parser.add_argument(
        "checkouts", nargs="+", type=Path, help="BEFORE AFTER, or one with --save or --against"
    )
    parser.add_argument(
        "--save", type=Path, metavar="DIR", help="keep what the first checkout gives"
    )
    parser.add_argument("--against", type=Path, metavar="DIR", help="compare with what --save kept")
    parser.add_argument("--expected", type=Path, metavar="FILE", help="lines PATTERN: reason")
    parser.add_argument("--only", default="", metavar="SECTION,...", help="only these sections")
    parser.add_argument("--jobs", type=int, default=2, help="sections at a time")
    options = parser.parse_args(argv)
    data = Path(os.environ.get("RANKTILT_TEST_DATA") or ROOT.parent / "shared" / "data").resolve()
    every = commands(COMMANDS.read_text(encoding="utf-8"))
    sections = (
        options.only.split(",") if options.only else sorted({command.section for command in every})
    )
    chosen = [command for command in every if command.section in sections]
    if not data.is_dir():
        chosen = [
            command
            for command in chosen
            if "data/" not in command.line and "lengths.tsv" not in command.line
        ]
    trees = [Tree(checkout.resolve(), data) for checkout in options.checkouts]
    first = run(trees[0], chosen, options.jobs)
    if options.save:
        save(first, options.save)
    if options.against:
        names = {command.name for command in chosen}
        recorded_outputs = load(options.against)
        recorded = names & {name.partition("/")[0] for name in recorded_outputs}
        old, new = (
            {n: text for n, text in side.items() if n.partition("/")[0] in recorded}
            for side in (recorded_outputs, first)
        )
    elif len(trees) > 1:
        old, new = first, run(trees[1], chosen, options.jobs)
    else:
        return 0
    lines, surprises = compare(old, new, expected(options.expected))
    sys.stdout.write("\n".join([*lines, ""]))
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
