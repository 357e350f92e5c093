"""Compare addresses of pages by one rule, and find the domain of an address.

Engines, search results and label files write the address of one page in several ways. Two addresses
name the same page if they are equal without the scheme, a leading ``www.``, the fragment, the slash
at the end and the parameters that only track where a visitor came from. The host counts without
case; the path and the other parameters count as they are. A text that is no address stays as it is.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//\S+", re.IGNORECASE)
"""An address with its scheme."""
_BARE_ADDRESS = re.compile(r"(?:www\.|(?:[a-z0-9-]+\.)+[a-z]{2,}/)\S*", re.IGNORECASE)
"""An address without its scheme: it begins with ``www.`` or with a host and a slash."""
_TRACKING = re.compile(
    r"utm_\w+|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid"
    r"|mc_cid|mc_eid|_hsenc|_hsmi|srsltid|ref_src|vero_id|oly_enc_id|oly_anon_id",
    re.IGNORECASE,
)
"""Parameters that name a campaign, a click or a mail, and never a page."""
CUT_OFF = re.compile(r"(?:…|\.\.\.)$")
"""How an address ends that was shortened for display."""


def is_address(text: str) -> bool:
    """Return whether a text is the address of a page, with or without its scheme."""
    return bool(_ADDRESS.fullmatch(text) or _BARE_ADDRESS.fullmatch(text))


def page_key(text: str) -> str:
    """Return a key that is the same for all addresses of one page.

    A text that is no address is returned as it is.

    >>> page_key("https://www.Example.org/a/?utm_source=chat&id=7#top")
    'example.org/a?id=7'
    """
    text = text.strip()
    if not is_address(text):
        return text
    with_scheme = text if "//" in text[:32] else f"//{text}"
    try:
        parts = urlsplit(with_scheme)
    except ValueError:  # such as a bracket that opens an IPv6 address and is not closed
        return text
    host = parts.netloc.rpartition("@")[2].lower()
    host = host.removesuffix(":443").removesuffix(":80").removeprefix("www.")
    parameters = [
        parameter
        for parameter in parts.query.split("&")
        if parameter and not _TRACKING.fullmatch(parameter.partition("=")[0])
    ]
    query = f"?{'&'.join(parameters)}" if parameters else ""
    return f"{host}{parts.path.rstrip('/')}{query}"


def domain_of(text: str) -> str:
    """Return the host of an address, without ``www.`` and the port.

    Empty for a text that is no address. A key that `page_key` made counts as an address.
    """
    if not is_address(text.strip()):
        # A key of `page_key` has lost its scheme, and the slash where it names a host alone.
        host = text.partition("/")[0].partition("?")[0].partition(":")[0]
        return host if re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", host) else ""
    host = page_key(text).partition("/")[0].partition("?")[0]
    return host.partition(":")[0]
