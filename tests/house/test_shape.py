"""Few positional parameters, no prints or swallowed errors, and words for all that users import."""

import ast
import inspect
import types
from collections.abc import Callable, Iterator

import pytest

import ranktilt
from tests.house import tree

Function = ast.FunctionDef | ast.AsyncFunctionDef
Check = Callable[[tree.Module], list[str]]

PARAMETERS = 5
PUBLIC_NAMES = 94  # the nouns, the measures, the results, the errors, and a function for each verb


def functions(module: tree.Module) -> Iterator[Function]:
    return (node for node in module.nodes if isinstance(node, Function))


def many_parameters(module: tree.Module) -> list[str]:
    faults = []
    for node in functions(module):
        names = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args]]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > PARAMETERS:
            faults.append(
                f"{module.at(node)}: {node.name} takes {count} positional parameters, at most "
                f"{PARAMETERS}"
            )
    return faults


def prints_and_asserts(module: tree.Module) -> list[str]:
    faults = []
    for node in module.nodes:
        if isinstance(node, ast.Assert):
            faults.append(
                f"{module.at(node)}: assert; raise an error that tells the reader what to do"
            )
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ):
            faults.append(f"{module.at(node)}: print; only the command line writes to the terminal")
    return faults


def swallowed(module: tree.Module) -> list[str]:
    """List the handlers that catch everything without a word."""
    faults = []
    for node in module.nodes:
        if isinstance(node, ast.ExceptHandler):
            broad = isinstance(node.type, ast.Name) and node.type.id in (
                "Exception",
                "BaseException",
            )
            if node.type is None:
                faults.append(f"{module.at(node)}: bare except")
            elif broad and all(isinstance(step, ast.Pass) for step in node.body):
                faults.append(f"{module.at(node)}: an exception is swallowed")
    return faults


CHECKS: list[Check] = [many_parameters, prints_and_asserts, swallowed]


@pytest.mark.parametrize("check", CHECKS)
def test_every_module_keeps_the_rule(check: Check) -> None:
    for module in tree.read().values():
        assert not check(module)


def test_the_package_offers_few_names_and_each_is_there_and_documented() -> None:
    assert len(ranktilt.__all__) <= PUBLIC_NAMES
    assert set(ranktilt.__all__) <= set(dir(ranktilt))
    with pytest.raises(AttributeError, match=r"^module 'ranktilt' has no attribute 'rank'$"):
        _ = ranktilt.rank  # type: ignore[attr-defined]
    parts = {path.stem for path in tree.PACKAGE.iterdir()}
    assert not parts & set(ranktilt.__all__), "an imported part of the package would hide the name"
    for name in ranktilt.__all__:
        value = getattr(ranktilt, name)
        assert value is not None
        assert inspect.getdoc(value), name
        for part, member in vars(value).items() if inspect.isclass(value) else ():
            if not part.startswith("_") and isinstance(
                member, property | classmethod | types.FunctionType
            ):
                assert inspect.getdoc(getattr(value, part)), f"{name}.{part}"
