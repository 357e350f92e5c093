"""Views of what was trained."""
