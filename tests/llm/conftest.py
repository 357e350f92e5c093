"""Fixtures of the tests of language models."""

import os
from contextlib import suppress

import pytest


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server, key or proxy of whoever runs the tests, and short pauses before the client asks
    again.
    """
    for name in [
        name for name in os.environ if name.startswith("OPENAI_") or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    with suppress(ImportError):
        monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
