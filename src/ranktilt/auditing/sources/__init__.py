"""Several sources in one corpus: an audit of each source, with the reference alone.

A *source* is whoever wrote a document, such as a language model. The *reference* is the source that
all others are compared with, usually ``human``. A *series* is one model's sources at several
temperatures.

Start with `source_audits.audit_sources`: `sources_apart` splits the collection into one collection
for each source, `source_audits` audits each and corrects all p together, and `temperature_trend`
asks whether the tilt changes with the temperature of a series. May import the rest of `auditing`
and all below it. Tests: tests/auditing/sources.
"""
