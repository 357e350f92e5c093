"""Count what runs in one command: our functions, and the files that they stand in.

A function counts once, however often it is called. Only what `def` makes counts: no modules, class
bodies, lambdas or comprehensions. What an import calls (decorators, registrations) is left out.

    python -m tests.house.tracing audit DIR -r bm25 -m nDCG@10      # prints them file by file
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ranktilt
from ranktilt.cli.main import main

PACKAGE = str(Path(ranktilt.__file__).parent)
_IMPORT = "<frozen importlib._bootstrap>"
_UNNAMED = ("<module>", "<lambda>", "<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The functions of ours that ran."""

    functions: frozenset[CodeType]

    @property
    def by_file(self) -> dict[str, list[str]]:
        """Names of the functions of each file, in the order of their lines."""
        ordered = sorted(self.functions, key=lambda code: (code.co_filename, code.co_firstlineno))
        names: dict[str, list[str]] = {}
        for code in ordered:
            file = str(Path(code.co_filename).relative_to(PACKAGE))
            names.setdefault(file, []).append(code.co_qualname)
        return names


class Tracer:
    """Collects the functions that run while it is on; of the main thread alone."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self._importing = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_filename == _IMPORT and code.co_name == "_find_and_load":
            self._importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self._importing and _is_ours(code):
            self.calls[code] += 1


def _is_ours(code: CodeType) -> bool:
    # A class body runs as a function too, but takes no arguments and has no fast locals.
    is_function = bool(code.co_flags & 0x02)
    return code.co_filename.startswith(PACKAGE) and is_function and code.co_name not in _UNNAMED


def trace_command(words: list[str]) -> Trace:
    """Run ``ranktilt`` with these words in this process, and return what ran of ours."""
    tracer = Tracer()
    sys.argv = ["ranktilt", *words]
    sys.setprofile(tracer)
    try:
        main()
    except SystemExit as end:
        if end.code not in (0, None):
            raise
    finally:
        sys.setprofile(None)
    return Trace(functions=frozenset(tracer.calls))


if __name__ == "__main__":
    trace = trace_command(sys.argv[1:])
    for file, names in trace.by_file.items():
        print(f"{file}: {len(names)}: {', '.join(names)}")
    print(f"{len(trace.by_file)} files, {len(trace.functions)} functions")
