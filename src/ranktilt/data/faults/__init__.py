"""Faults of a collection, found before anything is ranked.

A *fault* is a difference between two sources besides who wrote their texts. Start with
`faults.find_faults`. `check_limits` says how many documents may have each fault, `contents` counts
documents, words and judgments, `text_flags` examines each text, `trimmed_texts` finds texts that
were cut, and `twin_likeness` says how alike twins are.
"""
