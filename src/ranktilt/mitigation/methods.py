"""The methods of correction by name, as they are typed, and how all of them are fitted.

A new method is a file with its correction and its `Method`, and a line in `METHODS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from ranktilt.errors import UserError, unknown_name
from ranktilt.mitigation.base import Correction
from ranktilt.mitigation.bench_result import MethodFits, RefusedMethod
from ranktilt.mitigation.causal import Causal, CausalFit, CausalMethod
from ranktilt.mitigation.fair_rerank import FairReRank, FairReRankMethod
from ranktilt.mitigation.interleave import Interleave, InterleaveMethod
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.mitigation.offset import Offset, OffsetFit, OffsetMethod
from ranktilt.mitigation.projection import ProjectionMethod
from ranktilt.rankers.dense.direction import Direction
from ranktilt.spec import parse_stages, read_value

METHODS: Mapping[str, type[Method]] = {
    "causal": CausalMethod,
    "projection": ProjectionMethod,
    "fair-rerank": FairReRankMethod,
    "interleave": InterleaveMethod,
    "offset": OffsetMethod,
}
"""Methods by name.

Fair re-ranking has variants, which are typed behind its name: ``fair-rerank:VARIANT``.
"""
CORRECTIONS: Mapping[str, type[Correction]] = {
    correction.name: correction for correction in (Causal, FairReRank, Interleave, Offset)
}
"""Corrections by name, as a ranker's text has them: ``bm25>>offset(…)``.

The method ``projection`` has none: it changes the vectors of a ranker, not its lists.
"""


def read_method(text: str) -> Method:
    """Return the method that a text describes, such as ``fair-rerank:exposure(target=1)``."""
    stages = parse_stages(text)
    stage = stages[0]
    if len(stages) > 1 or stage.k is not None:
        raise UserError(f"expected one method, such as offset; got {text!r}")
    if stage.name not in METHODS or (stage.argument and stage.name != FairReRankMethod.name):
        raise unknown_name("method", text, METHODS)
    method_class = METHODS[stage.name]
    hints = get_type_hints(method_class)  # an option's type says how its text is read
    values: dict[str, Any] = {} if stage.argument is None else {"variant": stage.argument}
    for name, value in stage.options.items():
        options = method_options(stage.name)
        if name not in options:
            raise unknown_name(f"option of {stage.name}", name, options)
        values[name] = read_value(value, hints[name], f"option {name!r} of {stage.name}")
    return method_class(**values)


def method_options(name: str) -> list[str]:
    """Return the options that a method takes in parentheses."""
    return [option.name for option in fields(METHODS[name]) if option.name != "variant"]


@dataclass(frozen=True, kw_only=True)
class FittedMethods:
    """The methods that could be fitted, and those that could not."""

    by_label: Mapping[str, FittedMethod]
    """Each fitted method by its `Method.label`."""
    refused: tuple[RefusedMethod, ...] = ()
    """Methods that could not be fitted, each with the reason."""

    @property
    def fits(self) -> MethodFits:
        """The numbers that the methods learned, one field for each kind, as a bench saves them."""
        offset, causal, direction = None, None, None
        for fitted in self.by_label.values():
            if isinstance(fitted.fit, OffsetFit):
                offset = fitted.fit
            elif isinstance(fitted.fit, CausalFit):
                causal = fitted.fit
            elif isinstance(fitted.fit, Direction):
                direction = fitted.fit
        return MethodFits(offset=offset, causal=causal, direction=direction)


def fit_methods(methods: Iterable[Method], queries: FittingQueries) -> FittedMethods:
    """Fit methods, and save the fits if the queries name a folder.

    A method that cannot be fitted is noted with its reason. If no method can be fitted, the first
    reason is raised.
    """
    fitted, errors = dict[str, FittedMethod](), dict[str, UserError]()
    for method in methods:
        try:
            fitted[method.label] = method.fit(queries)
        except UserError as error:
            if isinstance(error.__cause__, OSError):  # a file cannot be read, or the disk is full
                raise
            errors[method.label] = error
    if not fitted:
        raise next(iter(errors.values()))
    for method_fit in fitted.values():
        if queries.folder is not None and method_fit.fit is not None:
            method_fit.fit.save(method_fit.file)
    refused = [
        RefusedMethod(method=label, reason=str(error).removeprefix(f"{label}: "))
        for label, error in errors.items()
    ]
    return FittedMethods(by_label=fitted, refused=tuple(refused))
