"""Correct an audit of citations for wrong labels.

Start with `correct`. `parts` divides pages whose labels err differently, and `membership` corrects
by these parts.
"""
