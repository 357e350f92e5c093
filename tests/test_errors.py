"""How messages list names: all of a few, the first of many, and the range of many numbers."""

import pytest

from ranktilt.errors import list_names, unknown_name


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "none"),
        (["a", "b"], "a, b"),
        (["3", "10"], "3, 10"),
        ([str(n) for n in range(5, 405)], "400 numbers from 5 to 404"),
        ([f"{n / 10}" for n in range(-3, 30)], "33 numbers from -0.3 to 2.9"),
    ],
)
def test_names_are_listed_as_far_as_they_can_be_read(names: list[str], text: str) -> None:
    assert list_names(names) == text


def test_long_lists_are_cut_and_counted() -> None:
    text = list_names([f"domain-{n}.example.org" for n in range(60)])
    assert text.startswith("domain-0.example.org, domain-1.example.org, ")
    assert text.endswith("domain-11.example.org and 48 more")
    assert str(
        unknown_name("domain", "domain-7.example", [f"domain-{n}.example.org" for n in range(60)])
    )
