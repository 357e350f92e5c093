"""``ranktilt explain citations.json``: what goes with the gap between two sides' citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ranktilt.cli import options
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError


def explain_audit_of_citations(
    file: Path,
    properties: Sequence[str] | None,
    labels: LabelOptions,
    output: PageOutput,
    *,
    unread: Mapping[str, object],
) -> None:
    """Explain an audit of citations with the columns and texts of its pages."""
    from ranktilt.citing.explain import explain_citations
    from ranktilt.citing.result import CitationAudit

    if unread["--by-factor"]:
        raise UserError(
            "--by-factor reads answers, not their audit: ranktilt cite ANSWERS --groups DIR "
            "--by-factor, with the collection of versions in DIR"
        )
    reason = "an audit of citations is explained by --probe and the columns of --groups alone"
    options.refuse_unread({**unread, "--reference": labels.reference}, reason)
    label_file = labels.labels
    output.check(file, *([] if label_file is None else [file_of(label_file.path)]))
    statistics = statistics_settings()
    gaps = explain_citations(
        CitationAudit.load(file),
        label_file,
        properties or None,
        seed=statistics.seed,
        correction=statistics.correction,
    )
    output.deliver(gaps)
