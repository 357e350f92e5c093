"""What the file of an audit stores besides its answers, so that nothing is ranked twice.

- `top_results`: the first results of every list, from which reports are made
- `contributions`: what each document adds to each answer, from which two audits are compared
- `provenance`: the inputs, options and versions with which the audit can be repeated
- `array_text`: arrays as short texts, which JSON can hold

The record that holds all of them is `auditing.result.Audit`. May import `auditing.groups`,
`auditing.judged_run`, samples and effects, and all rooms below. Tests:
tests/auditing/test_result.py.
"""
