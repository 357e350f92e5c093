"""A model's server: its address, the key that is sent only there, and how it has behaved so far.

The *key* is the secret one by which a server knows its customers.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from ranktilt.errors import UserError

BASE = "OPENAI_BASE_URL"
"""Environment variable of the server's address."""
OPENAI_URL = "https://api.openai.com/v1"
"""OpenAI's server, the default."""
VARIABLE = "OPENAI_API_KEY"
"""Environment variable of the key."""
SHORT_KEY = 6
"""Fewest characters of a key that is hidden in texts of answers.

A shorter one, such as ``3`` or ``none``, could be the answer.
"""
_KEY_WITHIN_WORDS = 8
"""Fewest characters of a key that is also hidden as a part of a longer word."""
LONG_KEY = 16
"""Fewest characters of a key that cannot be the name of a model or a host."""


def base_url(url: str | None) -> str | None:
    """Return a base URL in canonical form, by default from ``OPENAI_BASE_URL``.

    None for OpenAI's server.
    """
    text = (url or os.environ.get(BASE) or "").strip()
    if not text:
        return None
    try:
        parts = urlsplit(text)
        host, port, scheme = parts.hostname, parts.port, parts.scheme.lower()
    except ValueError:
        host = None
    if not host or scheme not in ("http", "https") or re.search(r"[\s?#@]", text):
        # The message does not repeat the text, which may hold a password.
        raise UserError(
            f"{'base_url' if url else BASE} must be a URL such as http://localhost:8000/v1, "
            f"without user, password or query: a key is read from {VARIABLE} alone"
        )
    bracketed = f"[{host}]" if ":" in host else host
    address = f"{scheme}://{bracketed}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    return None if address == OPENAI_URL else address


def redactor(key: str | None, *, least: int = 1) -> Callable[[str], str]:
    """Return a function that hides a key in a text, in upper and lower case.

    A key of fewer characters than `least` is not hidden. A short key is only hidden if it is a word
    by itself, because it may be a part of other words by chance.
    """
    if not key or len(key) < least:
        return _unchanged
    form = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])" if len(key) < _KEY_WITHIN_WORDS else "{}"
    pattern = re.compile(form.format(re.escape(key)), re.I)
    return lambda text: pattern.sub("[key]", text)


def _unchanged(text: str) -> str:
    """Return the text as it is: there is no key to hide."""
    return text


@dataclass(kw_only=True)
class Server:
    """A model behind a server, how to send requests there, and how it has behaved so far."""

    model: str
    """Name of the model, as the server knows it."""
    url: str | None
    """Base URL; None for OpenAI's server."""
    key: str | None = field(default=None, repr=False)
    """Key that is sent to the server; None where there is none."""
    timeout: float = 120.0
    """Time limit of a request, in seconds."""
    retries: int = 5
    """Number of times that a failed request is sent again."""
    requests_per_minute: int | None = None
    """Most requests in a minute; None for no limit."""
    reached: bool = False
    """Whether the server has ever responded, even with an error."""
    has_answered: bool = False
    """Whether the server has ever answered a prompt, now or in a journal."""

    @property
    def where(self) -> str:
        """The server's name in messages."""
        return self.url or "the OpenAI API"

    @property
    def loopback(self) -> bool:
        """Whether the server is on this machine."""
        host = str(urlsplit(self.url or OPENAI_URL).hostname)
        with suppress(ValueError):
            return ipaddress.ip_address(host).is_loopback
        return host == "localhost" or host.endswith(".localhost")

    @cached_property
    def clean(self) -> Callable[[str], str]:
        """Function that hides the key in names and messages."""
        return redactor(self.key)

    @cached_property
    def secret(self) -> Callable[[str], str]:
        """Function that hides the key in texts of answers, unless it could be an answer itself."""
        return redactor(self.key, least=SHORT_KEY)
