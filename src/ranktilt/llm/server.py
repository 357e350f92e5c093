"""Who is asked: the address of a server, the key that goes there and nowhere else, and how it has gone so far."""

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
OWN = "https://api.openai.com/v1"
"""OpenAI's own server, which is meant too where no address is given."""
VARIABLE = "OPENAI_API_KEY"
SHORT_KEY = 6
"""Characters from which a key is hidden in the text of an answer: a shorter one, such as ``3`` or ``none``, could be
the answer."""
_WITHIN_WORDS = 8
"""Characters from which a key is hidden within a longer word too."""
LONG_KEY = 16
"""Characters from which a key can be no name of a model or a host."""


def base_url(given: str | None) -> str | None:
    """Return a base URL in one form, by default that of ``OPENAI_BASE_URL``; None for OpenAI's own server."""
    text = (given or os.environ.get(BASE) or "").strip()
    if not text:
        return None
    try:
        parts = urlsplit(text)
        host, port, scheme = parts.hostname, parts.port, parts.scheme.lower()
    except ValueError:
        host = None
    if not host or scheme not in ("http", "https") or re.search(r"[\s?#@]", text):
        # What is refused is not shown: it may hold a password.
        raise UserError(
            f"{'base_url' if given else BASE} must be a URL such as http://localhost:8000/v1, without user, "
            f"password or query: a key is read from {VARIABLE} alone"
        )
    bracketed = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{bracketed}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    return None if url == OWN else url


def redactor(key: str | None, *, least: int = 1) -> Callable[[str], str]:
    """Make a function that hides a key in a text, in whatever case it stands there.

    A key of fewer characters than `least` is left alone; a short one is only hidden where it stands
    by itself, so that it does not eat into words.
    """
    if not key or len(key) < least:
        return _unchanged
    edge = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])" if len(key) < _WITHIN_WORDS else "{}"
    pattern = re.compile(edge.format(re.escape(key)), re.I)
    return lambda text: pattern.sub("[key]", text)


def _unchanged(text: str) -> str:
    return text


@dataclass(kw_only=True)
class Server:
    """A model behind a server, how requests are sent there (`timeout` in seconds), and how it has gone so far."""

    model: str
    url: str | None
    """None for OpenAI's own."""
    key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    retries: int = 5
    requests_per_minute: int | None = None
    reached: bool = False
    """Whether it ever said anything, if only an error."""
    has_answered: bool = False
    """Whether it ever answered a prompt, now or by a journal."""

    @property
    def where(self) -> str:
        """The server as a message names it."""
        return self.url or "the OpenAI API"

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        host = str(urlsplit(self.url or OWN).hostname)
        with suppress(ValueError):
            return ipaddress.ip_address(host).is_loopback
        return host == "localhost" or host.endswith(".localhost")

    @cached_property
    def clean(self) -> Callable[[str], str]:
        """Hides the key in names and messages."""
        return redactor(self.key)

    @cached_property
    def secret(self) -> Callable[[str], str]:
        """Hides the key in texts of answers, which are read the same whatever the key."""
        return redactor(self.key, least=SHORT_KEY)
