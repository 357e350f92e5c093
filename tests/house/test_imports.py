"""Imports flow one way, from the command line down to the errors."""

import ast
import graphlib
import sys
from pathlib import Path

from tests.house import tree

LEVELS = [
    ["errors", "_version"], ["option", "optional", "progress"], ["io", "text"], ["executing", "statistics"],
    ["collection"], ["run"], ["measures", "datasets", "models"], ["llm"], ["rankers"], ["auditing"],
    ["probes", "generation", "training"], ["mitigation", "planning"], ["experiments"], ["reporting"], ["registry"],
    ["cli"],
]  # fmt: skip
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}


def part(name: str) -> str:
    """Return the layer that a module belongs to: `ranktilt.datasets.beir` is of `data`."""
    return name.split(".")[1] if "." in name else ""


def edges(modules: dict[str, tree.Module]) -> list[tuple[tree.Module, ast.AST, str]]:
    """List every import of our own modules: who, where, and the module that is imported."""
    found = []
    for module in modules.values():
        for node in module.nodes:
            for name in tree.imported(module, node):
                if name.split(".")[0] == "ranktilt":
                    target = name if name in modules else name.rpartition(".")[0]
                    found.append((module, node, target))
    return found


def misplaced(modules: dict[str, tree.Module]) -> list[str]:
    """List the modules of no known layer, and the ones whose name says nothing."""
    found = []
    for module in modules.values():
        if part(module.name) and part(module.name) not in LEVEL:
            found.append(f"{module.at(module.tree)}: {part(module.name)!r} is in no layer; add it to LEVELS")
        if module.path.stem in VAGUE:
            found.append(f"{module.at(module.tree)}: name the file after its idea, not {module.path.name!r}")
    return found


def upward(modules: dict[str, tree.Module]) -> list[str]:
    """List the imports that go up, or sideways into another part of the same level."""
    found = []
    for module, node, target in edges(modules):
        here, there = part(module.name), part(target)
        if not here or here not in LEVEL or here == there:
            continue
        if not there:
            found.append(f"{module.at(node)}: imports the package itself; import the module that defines it")
        elif LEVEL.get(there, len(LEVELS)) >= LEVEL[here]:
            found.append(f"{module.at(node)}: {here} must not import {there} ({target})")
    return found


def circle(modules: dict[str, tree.Module]) -> list[str]:
    """Return one circle of imports as a list of names; empty where there is none."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for module, _, target in edges(modules):
        if part(module.name) and target != module.name:
            graph[module.name].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def eager(modules: dict[str, tree.Module]) -> list[str]:
    """List what the package's own `__init__` imports at once beyond the standard library and level 0."""
    root = modules["ranktilt"]
    allowed = {f"ranktilt.{name}" for name in LEVELS[0]}
    found = []
    for node in tree.at_import(root.tree):
        for name in tree.imported(root, node):
            ours = name in allowed or name.rpartition(".")[0] in allowed
            if not ours and name.split(".")[0] not in sys.stdlib_module_names:
                found.append(f"{root.at(node)}: imports {name} at once")
    return found


def test_every_module_belongs_to_a_layer_and_imports_go_down_only() -> None:
    modules = tree.read()
    assert not misplaced(modules)
    assert not upward(modules)
    assert not circle(modules)
    assert not eager(modules)


def test_checkers_find_imports_that_go_up_or_sideways_or_round(tmp_path: Path) -> None:
    eager_lines = "import sys\nfrom ranktilt._version import __version__\nfrom ranktilt.run import Run\n"
    files = {
        "__init__.py": eager_lines + "if TYPE_CHECKING:\n    import polars\n",
        "_version.py": "",
        "errors.py": "",
        "io/files.py": "from ranktilt.errors import UserError\n",
        "io/a.py": "from ranktilt.io.b import x\n",
        "io/b.py": "def f():\n    from .a import y\n",
        "auditing/__init__.py": "from ranktilt.measures.base import X\nfrom .gate import g\n",
        "auditing/gate.py": "",
        "measures/base.py": "def f():\n    from ..auditing import gate\n",
        "measures/more.py": "from ..datasets import beir\n",
        "datasets/beir.py": "if TYPE_CHECKING:\n    import ranktilt.measures.base\n",
        "run.py": "from ranktilt import Collection\n",
    }
    modules = tree.read(tree.write(tmp_path, files))
    assert upward(modules) == [
        "ranktilt/datasets/beir.py:2: datasets must not import measures (ranktilt.measures.base)",
        "ranktilt/measures/base.py:2: measures must not import auditing (ranktilt.auditing.gate)",
        "ranktilt/measures/more.py:1: measures must not import datasets (ranktilt.datasets.beir)",
        "ranktilt/run.py:1: imports the package itself; import the module that defines it",
    ]
    assert circle(modules)
    assert eager(modules) == ["ranktilt/__init__.py:3: imports ranktilt.run.Run at once"]


def test_checkers_find_an_unknown_layer_and_a_vague_name(tmp_path: Path) -> None:
    found = misplaced(tree.read(tree.write(tmp_path, {"manager.py": "", "datasets/utils.py": ""})))
    assert found == [
        "ranktilt/datasets/utils.py:1: name the file after its idea, not 'utils.py'",
        "ranktilt/manager.py:1: 'manager' is in no layer; add it to LEVELS",
    ]
