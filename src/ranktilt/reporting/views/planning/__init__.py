"""Views of plans."""
