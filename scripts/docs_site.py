"""Make the pages of the command line, and the site's texts for language models."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

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
    """Write `llms.txt`, every page by its use, and `llms-full.txt`, the text of all of them."""
    if error is not None:
        return
    summary = [f"# {app.config.project}", "", f"> {_first_paragraph(app.env, app.config.root_doc)}"]
    texts = []
    for caption, pages in _chapters(app.env, app.config.root_doc):
        summary += ["", f"## {caption}", ""]
        summary += [_page_line(app.env, page) for page in pages]
        texts += [Path(app.env.doc2path(page)).read_text(encoding="utf-8") for page in pages]
    folder = Path(app.outdir)
    (folder / "llms.txt").write_text("\n".join(summary) + "\n", encoding="utf-8")
    (folder / "llms-full.txt").write_text("\n".join(texts), encoding="utf-8")


def _chapters(env: Any, root: str) -> list[tuple[str, list[str]]]:
    """List the captions of the first page with their pages, and pages below these."""
    toctrees = env.get_doctree(root).findall(addnodes.toctree)
    return [(toctree["caption"], _with_pages_below(env, toctree)) for toctree in toctrees]


def _with_pages_below(env: Any, toctree: addnodes.toctree) -> list[str]:
    pages = []
    for _, page in toctree["entries"]:
        pages.append(page)
        for below in env.get_doctree(page).findall(addnodes.toctree):
            pages += _with_pages_below(env, below)
    return pages


def _page_line(env: Any, page: str) -> str:
    """Return a page's line in `llms.txt`: what it is called, and what it is for."""
    purpose = _first_paragraph(env, page).removeprefix("After this page you can ")
    first_sentence = re.sub(r"(?<=\.) (?=[A-Z]).*", "", purpose)
    return f"- [{env.titles[page].astext()}]({page}.html): {first_sentence}"


def _first_paragraph(env: Any, page: str) -> str:
    paragraph = next(iter(env.get_doctree(page).findall(nodes.paragraph)))
    return " ".join(paragraph.astext().split())
