"""A class name occurs once, and no name is a riddle."""

import ast
import re
from collections import Counter
from collections.abc import Iterable

from tests.house import tree

WORDS = {
    "arms",
    "asked",
    "asking",
    "claims",
    "desk",
    "inked",
    "leftover",
    "lessons",
    "patience",
    "plate",
    "reopening",
    "spot",
    "tally",
    "telling",
    "traffic",
    "whereabouts",
    "workplace",
    "worth_a_look",
}
"""They do not return as any part of a name."""
NAMES = {
    "again",
    "around",
    "band",
    "body",
    "chunks",
    "copies",
    "entry",
    "kept",
    "listed",
    "lone",
    "lost",
    "made",
    "nets",
    "own",
    "places",
    "sides",
    "tail",
    "there",
    "way",
    "what",
}
"""They are not a name by themselves, of a module, a class or a function."""
CLASSES = {"line", "order", "page"}
"""They are not the name of a class."""


def definitions(modules: Iterable[tree.Module]) -> list[tuple[str, str]]:
    """List what is named: (kind, name), kind being module, class or function."""
    name_pairs = [("module", module.path.stem) for module in modules]
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                name_pairs.append(("class", node.name))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name_pairs.append(("function", node.name))
    return name_pairs


def repeated_classes(modules: Iterable[tree.Module]) -> set[str]:
    names = [
        node.name
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    ]
    return {name for name, count in Counter(names).items() if count > 1}


def riddles(modules: Iterable[tree.Module]) -> set[str]:
    """Return the names that hold a word of WORDS, or are one of NAMES or, of a class, of
    CLASSES.
    """
    names = set()
    for kind, name in definitions(modules):
        words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
        joined = "_".join(words)
        if joined in NAMES | WORDS or WORDS & set(words) or (kind == "class" and joined in CLASSES):
            names.add(name)
    return names


def test_a_class_name_occurs_once_and_no_name_is_a_riddle() -> None:
    modules = tree.read().values()
    assert not repeated_classes(modules)
    assert not riddles(modules)
