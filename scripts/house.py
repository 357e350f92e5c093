"""Print how readable the source is, rule by rule, and how many things there are to understand.

python scripts/house.py                     # the table; exit status 1 where a rule that is held is
broken
    python scripts/house.py --list riddle-name  # the places of one rule
    python scripts/house.py --folder tests      # of another folder

Nothing here counts lines of a file or a function: longer and plain beats short and clever.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import complexipy

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "ranktilt"
RIDDLES = frozenset(
    {
        *("one", "two", "some", "other", "each", "it", "item", "thing", "entry"),
        *("found", "place", "places", "named", "said", "told", "asked", "held", "made", "kept"),
        *("given", "wanted", "shown", "whole", "own", "how", "what"),
    }
)
"""Pronouns, participles and question words, which name nothing."""
LINE_LENGTH = 100
MOST_EXPRESSIONS, LONG_STATEMENT = 15, 40
MOST_POSITIONAL = 4
MOST_COMPLEXITY = 15
MOST_PARAMETERS = 8
MOST_OWN_MODULES = 12
MANY_ARGUMENTS = frozenset(
    {
        *("select", "agg", "with_columns", "format", "zip", "max", "min", "join", "print"),
        *("chain", "concatenate"),
    }
)
"""Calls that take as many arguments as there are."""
DISPATCHERS = frozenset({"__init__.py", "registry.py", "main.py"})
"""Files whose task is to name many modules, and to import some by a string."""
HELD_EVERYWHERE = frozenset({"fmt-skip", "long-line", "riddle-name", "nested-conditional"})
"""Rules whose limit the source keeps, and each of the folders beside it."""
HELD_IN_SOURCE = HELD_EVERYWHERE | {
    *("long-statement", "positional-call", "nested-comprehension", "record-by-position"),
    *("complexity", "parameters", "import-by-string"),
}
"""Rules whose limit the source keeps; the others are reported until they are met everywhere."""
FOLDERS_BESIDE_SOURCE = ("tests", "scripts", "benchmarks", "examples")

Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SIMPLE_STATEMENTS = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Expr,
    ast.Raise,
    ast.Assert,
    ast.Delete,
)
NAMES_AND_LITERALS = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp)


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One Python file and its syntax tree."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def comments(self) -> list[tokenize.TokenInfo]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [token for token in tokens if token.type == tokenize.COMMENT]

    @property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes if isinstance(node, Function)]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a rule is broken."""

    line: int
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of style: what is counted, and how many places there may be."""

    name: str
    meaning: str
    find: Callable[[SourceFile], Iterable[Place]]
    limit: str


# ---- the rules ----------------------------------------------------------------------------------


def suppressed_formats(file: SourceFile) -> Iterator[Place]:
    for token in file.comments:
        if "fmt: skip" in token.string or "fmt: off" in token.string:
            yield Place(line=token.start[0])


def long_lines(file: SourceFile) -> Iterator[Place]:
    for number, line in enumerate(file.text.splitlines(), 1):
        if len(line) > LINE_LENGTH:
            yield Place(line=number, detail=f"{len(line)} characters")


def riddle_names(file: SourceFile) -> Iterator[Place]:
    operands = set(_dunder_operands(file))
    for node in file.nodes:
        name = _bound_name(node)
        if name.strip("_") in RIDDLES and id(node) not in operands:
            yield Place(line=node.lineno, detail=name)  # type: ignore[attr-defined]


def _bound_name(node: ast.AST) -> str:
    """Return the name that a node binds; empty where it binds none."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    if isinstance(node, ast.arg):
        return node.arg
    return node.name if isinstance(node, Function) else ""


def _dunder_operands(file: SourceFile) -> Iterator[int]:
    """Yield the parameters that the language itself calls `other`."""
    for function in file.functions:
        if function.name.startswith("__"):
            yield from (id(argument) for argument in function.args.args if argument.arg == "other")


def long_statements(file: SourceFile) -> Iterator[Place]:
    for statement, size in statement_sizes(file):
        if size > LONG_STATEMENT:
            yield Place(line=statement.lineno, detail=f"{size} expressions")


def statement_sizes(file: SourceFile) -> Iterator[tuple[ast.stmt, int]]:
    """Yield the simple statements that compute something, and how many expressions each has."""
    for node in file.nodes:
        if not isinstance(node, SIMPLE_STATEMENTS) or _is_docstring(node):
            continue
        always_counts = isinstance(node, (ast.Raise, ast.Assert, ast.Delete))
        if always_counts or not _is_plain(getattr(node, "value", None)):
            yield node, _expressions(node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_plain(node: ast.AST | None) -> bool:
    """Tell whether this is a table, or a record that is built by name: names and literals alone."""
    if isinstance(node, NAMES_AND_LITERALS):
        return True
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return all(map(_is_plain, node.elts))
    if isinstance(node, ast.Dict):
        return all(map(_is_plain, [*node.keys, *node.values]))
    if isinstance(node, ast.Call):
        values = [keyword.value for keyword in node.keywords]
        return len(node.args) <= MOST_POSITIONAL and all(map(_is_plain, [*node.args, *values]))
    return False


def _expressions(statement: ast.stmt) -> int:
    """Count the expressions of a statement; of a chain of calls, those of its largest link."""
    value = getattr(statement, "value", None)
    links = []
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        arguments = [*value.args, *value.keywords]
        links.append(1 + sum(_below(argument) for argument in arguments))
        value = value.func.value
    if len(links) < 2:
        return _below(statement)
    return max(links) + (0 if value is None else _below(value))


def _below(node: ast.AST) -> int:
    """Count the expressions of a node; the words and braces of an f-string are text."""
    children = list(ast.walk(node))
    texts = 0
    for child in children:
        if isinstance(child, ast.JoinedStr):
            texts += sum(isinstance(part, ast.Constant) for part in child.values)
    is_counted = [
        isinstance(child, ast.expr) and not isinstance(child, ast.FormattedValue)
        for child in children
    ]
    return sum(is_counted) - texts


def positional_calls(file: SourceFile) -> Iterator[Place]:
    for node in file.nodes:
        if not isinstance(node, ast.Call) or len(node.args) <= MOST_POSITIONAL:
            continue
        is_spread = any(isinstance(argument, ast.Starred) for argument in node.args)
        if not is_spread and _called_name(node) not in MANY_ARGUMENTS:
            called = ast.unparse(node.func)[:50]
            yield Place(line=node.lineno, detail=f"{called}: {len(node.args)}")


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def nested_comprehensions(file: SourceFile) -> Iterator[Place]:
    for node in file.nodes:
        if isinstance(node, COMPREHENSIONS) and (
            len(node.generators) > 1 or _holds_another(node, COMPREHENSIONS)
        ):
            yield Place(line=node.lineno)


def nested_conditionals(file: SourceFile) -> Iterator[Place]:
    for node in file.nodes:
        if isinstance(node, ast.IfExp) and _holds_another(node, ast.IfExp):
            yield Place(line=node.lineno)


def _holds_another(node: ast.AST, kinds: type | tuple[type, ...]) -> bool:
    return any(isinstance(child, kinds) for child in ast.walk(node) if child is not node)


def records_by_position(file: SourceFile) -> Iterator[Place]:
    for node in file.nodes:
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(index, int) and index > 1:
            yield Place(line=node.lineno, detail=ast.unparse(node))


def complex_functions(file: SourceFile) -> Iterator[Place]:
    for function in complexipy.file_complexity(str(file.path)).functions:
        if function.complexity > MOST_COMPLEXITY:
            detail = f"{function.name}: {function.complexity}"
            yield Place(line=function.line_start, detail=detail)


def long_signatures(file: SourceFile) -> Iterator[Place]:
    for function in file.functions:
        arguments = function.args
        count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
        if count > MOST_PARAMETERS and not _is_public(function):
            yield Place(line=function.lineno, detail=f"{function.name}: {count}")


def _is_public(function: Function) -> bool:
    """Tell whether users call a function: a verb, or one that the package or a table names."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    is_verb = any(decorator.startswith("verb(") for decorator in decorators)
    return is_verb or function.name in public_names()


@cache
def public_names() -> frozenset[str]:
    """Return what `ranktilt` exports, and the objects in the tables of its papers."""
    texts = [path.read_text("utf-8") for path in (ROOT / "src" / PACKAGE / "papers").rglob("*.py")]
    table_names = re.findall(rf'"{PACKAGE}\.[\w.]+:(\w+)"', "\n".join(texts))
    exported = ast.parse((ROOT / "src" / PACKAGE / "__init__.py").read_text("utf-8"))
    for node in ast.walk(exported):
        if isinstance(node, ast.Dict):
            table_names += [ast.literal_eval(key) for key in node.keys if key is not None]
    return frozenset(table_names)


def many_imports(file: SourceFile) -> Iterator[Place]:
    modules = set()
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            modules.add(node.module)
    if len(modules) > MOST_OWN_MODULES and file.path.name not in DISPATCHERS:
        yield Place(line=1, detail=f"{len(modules)} modules")


def imports_by_string(file: SourceFile) -> Iterator[Place]:
    if file.path.name in ("__init__.py", "registry.py"):
        return
    for node in file.nodes:
        if isinstance(node, ast.Call) and _called_name(node) == "import_module":
            yield Place(line=node.lineno)


RULES = (
    Rule(name="fmt-skip", meaning="`# fmt: skip`", find=suppressed_formats, limit="0"),
    Rule(name="long-line", meaning="lines over 100 characters", find=long_lines, limit="0"),
    Rule(name="riddle-name", meaning="names that name nothing", find=riddle_names, limit="0"),
    Rule(
        name="long-statement",
        meaning="statements of more than 40 expressions",
        find=long_statements,
        limit="5",
    ),
    Rule(
        name="positional-call",
        meaning="calls with more than 4 positional arguments",
        find=positional_calls,
        limit="10",
    ),
    Rule(
        name="nested-comprehension",
        meaning="nested comprehensions",
        find=nested_comprehensions,
        limit="3",
    ),
    Rule(
        name="nested-conditional",
        meaning="nested conditional expressions",
        find=nested_conditionals,
        limit="0",
    ),
    Rule(
        name="record-by-position",
        meaning="fields by their number: row[3]",
        find=records_by_position,
        limit="0",
    ),
    Rule(
        name="complexity",
        meaning="functions of cognitive complexity above 15",
        find=complex_functions,
        limit="0",
    ),
    Rule(
        name="parameters",
        meaning="functions of more than 8 parameters that are neither public nor verbs",
        find=long_signatures,
        limit="0",
    ),
    Rule(
        name="fan-out",
        meaning="files that import more than 12 own modules",
        find=many_imports,
        limit="5",
    ),
    Rule(
        name="import-by-string",
        meaning="modules imported by a string",
        find=imports_by_string,
        # The tables of extensions, extras, sentences, kinds of notes, and documented functions.
        limit="6",
    ),
)


# ---- counts -------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Report:
    """What was counted in a folder."""

    violations: dict[str, list[str]] = field(default_factory=dict)
    nodes: int = 0
    functions: int = 0
    comments: int = 0
    sizes: list[int] = field(default_factory=list)
    """Expressions of each simple statement."""

    @property
    def large_statements(self) -> float:
        """Percent of the simple statements with more expressions than are read at once."""
        large = sum(size > MOST_EXPRESSIONS for size in self.sizes)
        return 100 * large / max(len(self.sizes), 1)

    @property
    def comment_rate(self) -> float:
        """Comments per 100 functions."""
        return 100 * self.comments / max(self.functions, 1)


def report_of(folder: Path) -> Report:
    """Count every rule in the Python files below a folder."""
    report = Report()
    for path in sorted(folder.rglob("*.py")):
        file = SourceFile(path=path, text=path.read_text(encoding="utf-8"))
        report.nodes += sum(isinstance(node, ast.expr | ast.stmt) for node in file.nodes)
        report.functions += len(file.functions)
        report.comments += sum(_is_remark(token.string) for token in file.comments)
        report.sizes += [size for _, size in statement_sizes(file)]
        for rule in RULES:
            shown_path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            lines = report.violations.setdefault(rule.name, [])
            for violation in rule.find(file):
                lines.append(f"{shown_path}:{violation.line} {violation.detail}".rstrip())
    return report


def _is_remark(comment: str) -> bool:
    """Tell whether a comment speaks to a reader, and not to a tool."""
    return not any(word in comment for word in ("noqa", "type: ignore", "pragma", "fmt:"))


def rooms(package: Path) -> int:
    return sum(any(path.glob("*.py")) for path in package.iterdir() if path.is_dir())


def option_counts() -> dict[str, int]:
    """Return how many options each command has, by its name."""
    from ranktilt.cli.tree import commands

    return {command.name: len(command.options) for command in commands()}


def key_counts() -> tuple[int, int]:
    """Return how many keys texts take, and how many the configuration file.

    Texts name rankers, models, measures and probes.
    """
    from dataclasses import fields

    from ranktilt import config
    from ranktilt.cli.help_spec import spec_help, spec_names
    from ranktilt.data.faults.check_limits import CheckLimits

    in_texts = sum(len(spec.options) for name in spec_names() for spec in spec_help(name))
    sections = (
        config.MachineSettings,
        config.StatisticsSettings,
        config.LabelSettings,
        CheckLimits,
    )
    return in_texts, sum(len(fields(section)) for section in sections)


def main() -> int:
    """Print the table, or the places of one rule; 1 where a rule that is held is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "src")
    parser.add_argument("--list", choices=[rule.name for rule in RULES], help="print its places")
    arguments = parser.parse_args()
    report = report_of(arguments.folder.resolve())
    if arguments.list:
        print("\n".join(report.violations[arguments.list]) or "none")
        return 0
    print(f"{'rule':22} {'count':>9}  {'limit':>6}  meaning")
    for rule in RULES:
        print(
            f"{rule.name:22} {len(report.violations[rule.name]):9,}  {rule.limit:>6}  "
            f"{rule.meaning}"
        )
    print(
        f"{'large-statement':22} {report.large_statements:7.1f} %  {'14 %':>6}  of 15 expressions"
    )
    print(f"{'comments':22} {report.comment_rate:9.0f}  {'':>6}  per 100 functions")
    print(f"{'nodes':22} {report.nodes:9,}  {'':>6}  of the syntax tree")
    print_counts()
    return int(has_broken_rules(report))


def print_counts() -> None:
    """Print how many commands, options and rooms there are."""
    counts = option_counts()
    largest = max(counts, key=lambda name: counts[name])
    print(f"{'commands':22} {len(counts):9,}  {'26':>6}  leaves of the command line")
    print(f"{'options':22} {sum(counts.values()):9,}  {'360':>6}  of all commands")
    print(f"{'largest command':22} {counts[largest]:9,}  {'32':>6}  options of {largest}")
    in_texts, in_file = key_counts()
    print(f"{'keys of texts':22} {in_texts:9,}  {'':>6}  of rankers, models, measures and probes")
    print(f"{'keys of the file':22} {in_file:9,}  {'':>6}  of ranktilt.toml, besides a model's own")
    print(f"{'rooms':22} {rooms(ROOT / 'src' / PACKAGE):9,}  {'17':>6}  of the package")


def has_broken_rules(report: Report) -> bool:
    """Say on stderr which of the rules that are held are broken, in source and beside it."""
    messages = list(broken_rules(report, HELD_IN_SOURCE))
    for folder in FOLDERS_BESIDE_SOURCE:
        messages += broken_rules(report_of(ROOT / folder), HELD_EVERYWHERE)
    for message in messages:
        print(message, file=sys.stderr)
    return bool(messages)


def broken_rules(report: Report, rule_names: frozenset[str]) -> Iterator[str]:
    """Yield a message for each rule that is broken in more places than its limit."""
    for rule in RULES:
        violations = report.violations[rule.name]
        if rule.name in rule_names and len(violations) > int(rule.limit):
            listed = "\n".join(violations)
            yield f"{listed}\n{rule.name}: at most {rule.limit}"


if __name__ == "__main__":
    sys.exit(main())
