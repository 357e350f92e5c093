"""Faults of a collection, found before anything is ranked.

Start with `faults.find_faults`. `check_limits` says how many of each are allowed, `contents` counts
documents, words and judgments, `trimmed_texts` finds texts that were cut, and `twin_likeness` says
how alike twins are.
"""
