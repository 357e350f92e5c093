"""Doors to other libraries, one file a library, imported on use."""
