"""``ranktilt explain citations.json``: what goes with the gap between two sides' citations."""

from __future__ import annotations

from pathlib import Path

from ranktilt.cli import options
from ranktilt.cli.explain.inputs import ExplainInputs
from ranktilt.cli.explain.question import ExplainQuestion
from ranktilt.cli.output import PageOutput
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError


def explain_audit_of_citations(
    file: Path, inputs: ExplainInputs, question: ExplainQuestion, output: PageOutput
) -> None:
    """Explain an audit of citations with columns and texts of its pages.

    Parameters
    ----------
    file : Path
        The audit, as ``ranktilt cite --json`` saves it.
    inputs, question : ExplainInputs, ExplainQuestion
        Options of the verb, of which only ``--probe`` and those of labels are read; the others are
        refused.
    output : PageOutput
        Where the result goes.
    """
    from ranktilt.citing.explain import explain_citations
    from ranktilt.citing.result import CitationAudit

    _refuse_unread(inputs, question)
    label_file = inputs.labels
    output.check(file, *([] if label_file is None else [file_of(label_file.path)]))
    statistics = statistics_settings()
    gaps = explain_citations(
        CitationAudit.load(file),
        label_file,
        question.probe or None,
        seed=statistics.seed,
        correction=statistics.correction,
    )
    output.deliver(gaps)


def _refuse_unread(inputs: ExplainInputs, question: ExplainQuestion) -> None:
    """Refuse options that only a collection or a run could use."""
    if question.by_factor:
        raise UserError(
            "--by-factor reads answers, not their audit: ranktilt cite ANSWERS --groups DIR "
            "--by-factor, with the collection of versions in DIR"
        )
    unread = {
        "--attribution": question.attribution,
        "--adopters": question.adopters,
        "--by": question.by != "source",
        "-r": inputs.ranker,
        "--run": inputs.run,
        "--split": inputs.split,
        "--encoder": inputs.encoder,
        "--reference": inputs.reference,
    }
    reason = "an audit of citations is explained by --probe and the columns of --groups alone"
    options.refuse_unread(unread, reason)
