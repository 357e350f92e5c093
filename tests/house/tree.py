"""The source tree as the house tests see it: modules by dotted name, parsed once."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ranktilt"


@dataclass(frozen=True)
class Module:
    """One Python file: its path, its dotted name (`ranktilt.datasets.beir`) and its syntax tree."""

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


def read(package: Path = PACKAGE) -> dict[str, Module]:
    """Parse every .py file below a package folder, ours once a process; the keys are dotted names."""
    return _ours() if package == PACKAGE else _parsed(package)


@lru_cache
def _ours() -> dict[str, Module]:
    return _parsed(PACKAGE)


def _parsed(package: Path) -> dict[str, Module]:
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(path, name, text, ast.parse(text, str(path)))
    return found


def write(folder: Path, files: dict[str, str]) -> Path:
    """Make a toy package `ranktilt` in a folder, for tests of the checkers themselves."""
    package = folder / "ranktilt"
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


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
