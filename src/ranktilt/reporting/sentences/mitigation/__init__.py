"""Corrections in words.

`mitigate` says what a bench chose and at what cost, `next_commands` how to keep it, and `remedy`
how to build it into an engine.
"""
