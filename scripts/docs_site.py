"""What the documentation site holds beside its pages: the command line's, and `llms.txt`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes

from ranktilt.cli.tree import Command, commands

PAGES = Path("reference") / "cli"


def write_command_pages(docs: Path) -> None:
    """Write one page for each command, and their list."""
    folder = docs / PAGES
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        f"{'-'.join(command.path)}.md": _page(command)
        for command in sorted(commands(), key=lambda command: command.path)
    }
    listed = "\n".join(name.removesuffix(".md") for name in pages)
    pages["index.md"] = (
        f"# The command line\n\nWhat `--help` says.\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n"
        f"```\n"
    )
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")


def _page(command: Command) -> str:
    examples = "\n".join(f"$ {example}" for example in command.examples)
    text = inspect.cleandoc(command.parser.help or "")
    parts = [f"# ranktilt {command.name}", text, f"```sh\n{examples}\n```"]
    panels: dict[str, list[str]] = {}
    for argument in sorted([*command.arguments, *command.options], key=_panel_order):
        (panel,) = argument.parameter.group
        typed = " ".join([", ".join(argument.names), argument.parameter.metavar or ""]).strip()
        typed_cell = typed.replace("|", chr(92) + "|")
        meaning = _plain(" ".join(str(argument.parameter.help or "").split()))
        panels.setdefault(panel.name, []).append(f"| `{typed_cell}` | {meaning} |")
    tables = (
        f"## {panel}\n\n| typed | meaning |\n|---|---|\n" + "\n".join(rows)
        for panel, rows in panels.items()
    )
    return "\n\n".join([*parts, *tables]) + "\n"


def _panel_order(argument: Any) -> int:
    (panel,) = argument.parameter.group
    return int(panel.sort_key)


def _plain(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", text)


def name_files(app: Any, page: str, source: list[str]) -> None:
    """Name the files a page links to that are no pages, such as examples."""
    outside = r"\[([^\]]*)\]\((?:\.\./)+((?:examples|benchmarks)[^)#]*)[^)]*\)"
    source[0] = re.sub(
        outside,
        lambda link: f"{link[1]} (`{link[2]}`)" if link[1] != link[2] else f"`{link[2]}`",
        source[0],
    )


def set_dashes(app: Any, tree: Any, page: str) -> None:
    """Set a dash between a parameter and what it means, where Sphinx writes two hyphens."""
    for text in list(tree.findall(nodes.Text)):
        if text.astext() == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def write_llms(app: Any, error: Exception | None) -> None:
    """Write `llms.txt`: every page with its title, as language models are given a site."""
    if error is None:
        lines = [
            f"# {app.config.project}",
            "",
            "> What a ranker favours, how sure that is, why, and how to level it.",
            "",
        ]
        lines += [
            f"- [{app.env.titles[page].astext()}]({page}.html)"
            for page in sorted(app.env.found_docs)
            if page in app.env.titles
        ]
        (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
