"""Let a language model grade pairs of query and document.

Start with `grading.grade`. `inputs` prepares the requests, `parsing` reads a grade from an answer,
`settings` holds the options. `probes`, `length_doses` and `changed_facts` grade texts that were
changed by a rule, together with their originals.
"""
