"""``ranktilt data describe``: what a collection holds."""

from __future__ import annotations

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files


@options.verb("data describe DIR", "data describe hub:OWNER/NAME --format csv")
def describe(
    folder: options.AnyCollection,
    *,
    split: options.Split = None,
    output: PageOutput,
) -> None:
    """Count what each source holds: documents, words, judgments, twins, empty and duplicate texts."""
    from ranktilt.probes.description import describe as describe_collection

    output.check(*collection_files(folder))
    output.deliver(describe_collection(options.load_texts(folder, split)))
