"""The bundled collection: paragraphs of NumPy's and SciPy's documentation, and rewrites of them."""

from ranktilt.datasets.bundled.reader import bundled

__all__ = ["bundled"]
