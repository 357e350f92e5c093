"""The source tree as the house tests see it: modules by dotted name, parsed once."""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ranktilt"


@dataclass(frozen=True)
class Module:
    """One Python file: its path, its dotted name (`ranktilt.data.files`) and its syntax tree."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree; walking it once serves all checks."""
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """The dotted name that relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def at(self, node: ast.AST) -> str:
        """Where a node is, as an editor opens it: `ranktilt/datasets/beir.py:12`."""
        file = "/".join([*self.package.split("."), self.path.name])
        return f"{file}:{getattr(node, 'lineno', 1)}"


@lru_cache
def read() -> dict[str, Module]:
    """Parse every .py file of the package; the keys are dotted names.

    The trees stay. To search them for garbage while they grow takes twice as long as to parse.
    """
    gc.disable()
    try:
        modules = dict(_parsed())
    finally:
        gc.enable()
    gc.freeze()
    return modules


def _parsed() -> Iterator[tuple[str, Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        yield name, Module(path, name, text, ast.parse(text, str(path)))


def imported(module: Module, node: ast.AST) -> list[str]:
    """Every dotted name that one import statement may bring in; `from a import b` gives `a.b`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        above = module.package.split(".")[: len(module.package.split(".")) - node.level + 1]
        base = ".".join([*above, *filter(None, [node.module])])
    return [f"{base}.{alias.name}" for alias in node.names]


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs when a module is imported: not function bodies, not `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for branch in child.orelse:
                yield branch
                yield from at_import(branch)
            continue
        yield child
        yield from at_import(child)
