"""What is refused, in which words: `with refused("the whole message"): …`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ranktilt.errors import UserError


@contextmanager
def refused(message: str, kind: type[UserError] = UserError) -> Iterator[None]:
    """Expect an error of this kind inside the block, with exactly this message."""
    with pytest.raises(kind) as caught:
        yield
    assert str(caught.value) == message
