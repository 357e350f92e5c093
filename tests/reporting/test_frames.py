"""A result's rows as frames and as CSV: every number unrounded, and nothing for what is undefined."""

import csv
import io
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import UserError, table
from tests.reporting.audits import clear, small
from tests.reporting.results import RESULTS, result

NO_RESULTS = ("installation", "models", "models, in full", "explanation")


def test_an_audit_has_its_means_and_the_fields_of_its_effects() -> None:
    audit = small()
    assert audit.frame("means").equals(audit.by_group())
    tilts = audit.frame("tilts")
    assert tilts["run", "a", "b"].rows() == [(t.run, t.a, t.b) for t in audit.tilts]
    for name in ("value", "low", "high", "p", "p_corrected", "detectable", "band_low", "queries", "excluded"):
        assert tilts[name].to_list() == [getattr(t, name) for t in audit.tilts]
    assert tilts["estimand"][0] == "RelativeDelta(nDCG@1)"


def test_a_row_of_a_row_has_what_the_upper_one_says() -> None:
    gate = result("gate")
    checks = gate.frame("rows.checks")
    assert checks.height == sum(len(row.checks) for row in gate.rows)
    first = checks.row(0, named=True)
    assert (first["run"], first["value"]) == (gate.rows[0].run, gate.rows[0].checks[0].value)
    assert (first["outcome"], first["rows.outcome"]) == (gate.rows[0].checks[0].outcome, gate.rows[0].outcome)


def test_nested_values_have_both_names() -> None:
    plan, steps = result("plan"), result("plan").frame("steps").fill_null(np.nan)
    seconds = [step.seconds for step in plan.steps]
    assert steps["seconds"].to_list() == pytest.approx([cost.value for cost in seconds], nan_ok=True)
    assert steps["seconds_high"].to_list() == pytest.approx([cost.high for cost in seconds], nan_ok=True)
    assert plan.frame("total")["memory_low"][0] == plan.total.memory.low
    assert result("check").frame("rows")["examples"].drop_nulls().to_list() == ["d0-llm; d1-llm"]


def test_of_a_validation_each_part_is_named() -> None:
    validation = result("validation")
    assert validation.frame("statistics.sources")["words"][0] == 20.5
    assert validation.frame("similarity")["separation_auc"][0] == 0.871
    assert validation.frame("effectiveness")["low"][-1] is None  # undefined


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="unknown part of the result 'tilt'; did you mean 'tilts'"):
        small().frame("tilt")


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in NO_RESULTS])
def test_csv_holds_every_part(name: str) -> None:
    made: Any = result(name)
    lines = list(csv.DictReader(io.StringIO(table(made, "csv"))))
    whole = made.frame()
    assert [line["part"] for line in lines] == whole["part"].to_list()
    for column in (name for name, kind in whole.schema.items() if kind == pl.Float64):
        read = [float(line[column]) if line[column] else None for line in lines]
        assert read == whole[column].to_list()
        assert np.isfinite([v for v in read if v is not None]).all() or column.endswith(("ceiling", "floor"))


def test_csv_quotes_names() -> None:
    names = ('say "hi"', "a,b", "two\nlines")
    rows = list(csv.DictReader(io.StringIO(table(clear(names), "csv"))))
    assert list(dict.fromkeys(row["run"] for row in rows if row["part"] == "tilts")) == list(names)


def test_csv_of_models_holds_what_is_known() -> None:
    one, two, *_ = csv.DictReader(io.StringIO(table(result("models"), "csv")))
    known = (one["limit"], one["tuned"], one["here"], two["also"], two["pooling"])
    assert known == ("128", "true", "cache", "org/2", "")
