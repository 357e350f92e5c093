"""How values are printed, the same on every machine."""

from __future__ import annotations


def rounded(value: float, digits: int = 1, form: str = "") -> str:
    """Print a number with so many decimals; its last bits, in which machines differ, decide nothing."""
    return f"{float(f'{value:.12g}'):{form}.{digits}f}"


def signed(value: float, digits: int = 1) -> str:
    """Print a number with its sign; what rounds to nothing has none."""
    text = rounded(value, digits, "+")
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")
