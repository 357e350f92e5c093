"""The version, in its single place."""

__version__ = "0.1.0"
