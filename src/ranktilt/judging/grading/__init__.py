"""Let a language model grade pairs of query and document.

Start with `grading.grade`. `inputs` prepares the requests, `parsing` reads a grade from an answer,
`settings` holds the options. `probes`, `length_doses` and `changed_facts` grade texts that were
changed by a rule, together with their originals.

The model, with its prompt, is the *judge*. A *probe* is a rule that changes a passage without
making it relevant; a judge that grades the changed passage higher is fooled.
"""
