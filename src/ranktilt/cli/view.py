"""``ranktilt view``: the report in the browser, served to this machine only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import is_quiet, note, reporting
from ranktilt.cli.output import print_result
from ranktilt.cli.report import page_of
from ranktilt.errors import DataError, UserError

_GENERATOR = b'<meta name="generator" content="RankTilt '
_BOM = b"\xef\xbb\xbf"
_HEAD = 1 << 16


@options.verb
def view(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Audits and other results (JSON), or one finished report (HTML)."),
    ],
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="Of 127.0.0.1; 0 for any that is free.")
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Serve the page; open no browser.")] = False,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Keep queries, ranked lists and documents out of the page.")
    ] = False,
) -> None:
    """Show the report in the browser, from this machine to this machine, until Ctrl-C.

    The page is made once and held in memory; its address, which cannot be guessed, is written to stdout. Nothing else
    is served, and nobody but this machine is answered. A finished page may be anybody's: it runs in a frame that lets
    it load nothing and lead nowhere.
    """
    from ranktilt.cli.serving import PageServer

    with PageServer(port) as server:
        with reporting(quiet=is_quiet()):
            finished = _finished(files, texts=not no_texts)
            server.framed = bool(finished)
            server.page = finished or page_of(files, texts=not no_texts)
        print_result(f"{server.address}\n")
        if server.framed:
            note("The page is finished, and may be anybody's: it is shown in a frame that it cannot lead out of.")
        note("Serving until Ctrl-C.")
        server.serve(browser=not no_browser)


def _finished(files: Sequence[Path], *, texts: bool) -> bytes:
    """The page that a file is already; empty for results."""
    for file in files:
        page = _page(file)
        if not page:
            continue
        if _GENERATOR not in page[:_HEAD]:
            raise DataError(file, "expected a page that RankTilt wrote, got other HTML or XML")
        if len(files) > 1:
            raise UserError(f"{file} is a finished page, which is shown alone; name the JSON files of all results")
        if not texts:
            raise UserError(f"{file} is a finished page; --no-texts makes one, of the JSON file of a result")
        return page
    return b""


def _page(file: Path) -> bytes:
    """The whole of a file that begins as HTML does; empty for any other."""
    from ranktilt.io.files import open_bytes

    if os.path.isdir(file):
        return b""
    with open_bytes(file) as stream:
        start = stream.read(_HEAD)
        return start + stream.read() if start.removeprefix(_BOM).lstrip().startswith(b"<") else b""
