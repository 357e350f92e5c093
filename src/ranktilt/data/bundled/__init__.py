"""The bundled collection: paragraphs of NumPy's and SciPy's documentation, and rewrites of them."""

from ranktilt.data.bundled.reader import bundled

__all__ = ["bundled"]
