"""What is refused, in which words: `with refused("the whole message"): …`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ranktilt.errors import UserError


@contextmanager
def refused(message: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Expect an error of this kind inside the block, with this message, or what begins so where it
    ends in "…".
    """
    with pytest.raises(kind) as caught:
        yield
    text = str(caught.value)
    assert text == message or (message.endswith("…") and text.startswith(message[:-1])), text
