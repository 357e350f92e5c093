"""The model of stories, converted once."""

from tests.llm.conftest import stories as stories
