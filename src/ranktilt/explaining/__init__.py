"""Why: how the texts of two sides differ, and which differences go with a ranker's gap.

Start with `explain.explain`, which runs probes (`base` defines them: `text_probes`, `perplexity`,
`similarity`, `spectrum`), and `attribution`, which regresses the gap between twins on their
properties (`attribution_tables` shows it). `check` tells whether a comparison is fair,
`equivalence` whether either side is easier to search, `factors` what designed versions cause.
`properties` splits the gap between groups that are not twins among their properties; `file_report`
says what any file is. May import auditing and below. A new probe is a class and a line in
`explain.PROBES`, or an entry point. Tests: tests/explaining.
"""
