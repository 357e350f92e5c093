"""Why: how the texts of two sides differ, and which differences go with a ranker's gap.

The *reference* is the source that all others are compared with, usually human texts. *Twins* are
two documents of one origin by different sources. A *gap* is how much higher a ranker scores or
ranks one of two twins. A *property* is a number about a text, such as its length. A *probe* is a
question about texts, and an object that answers it.

Start with `explain.explain`, which runs probes (`base` defines them: `text_probes`, `perplexity`,
`similarity`, `spectrum`; `probe_table` names them). `attribution` regresses the gap between twins
(`twin_gaps`, `scored_twins`) on their `text_properties`. `check` tells whether a comparison is
fair, `equivalence` whether either side is easier to search, `factors` what designed versions cause.
`properties` splits the gap between groups that are not twins among their properties; `file_report`
says what any file is. May import auditing and below. A new probe is a class and a line in
`probe_table.PROBES`, or an entry point. Tests: tests/explaining.
"""
