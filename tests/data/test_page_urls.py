"""Addresses of one page are equal by one rule; others stay apart."""

import pytest

from ranktilt.data.page_urls import domain_of, page_key

SAME = [
    ("https://www.Example.org/a/", "example.org/a"),
    ("http://example.org/a#part", "example.org/a"),
    ("//example.org/a?utm_source=x&utm_medium=y", "example.org/a"),
    ("www.example.org/a", "example.org/a"),
    ("example.org/a?fbclid=1&id=7", "example.org/a?id=7"),
    ("https://example.org:443/", "example.org"),
    ("https://user@example.org/a", "example.org/a"),
]
APART = [
    ("https://example.org/A", "example.org/A"),
    ("https://m.example.org/a", "m.example.org/a"),
    ("https://example.org/a?page=2", "example.org/a?page=2"),
    ("msmarco_v2.1_doc_1", "msmarco_v2.1_doc_1"),
    ("doc/7", "doc/7"),
    ("http://[broken", "http://[broken"),
]


@pytest.mark.parametrize(("address", "key"), SAME + APART)
def test_page_key(address: str, key: str) -> None:
    assert page_key(address) == key


@pytest.mark.parametrize(
    ("address", "domain"),
    [
        ("https://www.example.org:8080/a", "example.org"),
        ("example.org", "example.org"),
        ("example.org/a?b", "example.org"),
        ("doc7", ""),
        ("doc/7", ""),
    ],
)
def test_domain_of(address: str, domain: str) -> None:
    assert domain_of(address) == domain
    assert domain_of(page_key(address)) == domain
