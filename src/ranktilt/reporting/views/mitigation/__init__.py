"""Views of what levels a ranker, and of what comes where nothing does."""
