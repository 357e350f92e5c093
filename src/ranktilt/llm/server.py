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
LONG_KEY = 16
"""Signs from which a key is taken out of what is kept; a shorter one, such as the word that a server of one's own takes
for a key, could be a word of the text."""


@dataclass(frozen=True)
class Address:
    """A server's base URL without a slash at its end (None for OpenAI's own), and whether it is on this machine."""

    url: str | None
    loopback: bool

    @property
    def where(self) -> str:
        """The server as a message names it."""
        return self.url or "the OpenAI API"

    @classmethod
    def of(cls, given: str | None) -> Address:
        """Check a base URL; None or an empty one takes that of ``OPENAI_BASE_URL``, if there is one."""
        text = (given or os.environ.get(BASE) or "").strip()
        if not text:
            return cls(None, False)
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
        place = f"[{host}]" if ":" in host else host
        url = f"{scheme}://{place}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
        return cls(None, False) if url == OWN else cls(url, _loopback(host))


def _loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def redactor(key: str | None, *, least: int = 1) -> Callable[[str], str]:
    """Make a function that takes a key out of a text, in whatever case it stands there.

    A key of fewer signs than `least` is left alone; a short one is only replaced where it stands by itself, so that it
    does not eat into words.
    """
    if not key or len(key) < least:
        return str
    edge = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])" if len(key) < 8 else "{}"
    pattern = re.compile(edge.format(re.escape(key)), re.I)
    return lambda text: pattern.sub("[key]", text)


@dataclass(kw_only=True)
class Server:
    """A model behind a server, how requests are sent there (`timeout` in seconds), and how it has gone so far."""

    model: str
    address: Address
    key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    retries: int = 5
    requests_per_minute: int | None = None
    reached: bool = False
    """Whether it ever said anything, if only an error."""

    @property
    def where(self) -> str:
        """The server as a message names it."""
        return self.address.where

    @cached_property
    def clean(self) -> Callable[[str], str]:
        """Takes the key out of what is shown."""
        return redactor(self.key)

    @cached_property
    def secret(self) -> Callable[[str], str]:
        """Takes the key out of what is kept."""
        return redactor(self.key, least=LONG_KEY)
