"""Views of what experiments show: corrections, growing collections, trainings, and factors of texts."""
