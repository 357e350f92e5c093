"""Attention over all groups at once: measures of whether every group gets its share."""
