"""A folder of questions that both sides answered: two domains, a split to learn from and one to test on."""

from pathlib import Path

from tests.toy import jsonl, tsv, write
from tests.training.material import WORDS

SIDES = ("human", "llm")


def answered_folder(folder: Path, *, test: int = 8) -> Path:
    """A question a word, of which the last `test` are tested on; two human answers and an LLM's, some beside them."""
    docs = [
        {
            "_id": f"{word}-{side}{number}", "title": "", "source": side, "domain": "law" if place % 2 else "art",
            "text": f"{word} {'zz' if number < 2 else 'yy'} {'ghijkl'[number]} {side[0]}",
        }
        for place, word in enumerate(WORDS)
        for side in SIDES
        for number in range(4)
    ]  # fmt: skip
    write(folder / "corpus.jsonl", jsonl(docs))
    write(folder / "queries.jsonl", jsonl({"_id": f"q-{word}", "text": word} for word in WORDS))
    for split, words in (("train", WORDS[:-test]), ("test", WORDS[-test:])):
        judged = [(word, answer) for word in words for answer in ("human0", "human1", "llm0")]
        rows = [(f"q-{word}", f"{word}-{answer}", 1) for word, answer in judged]
        write(folder / "qrels" / f"{split}.tsv", tsv(rows))
    return folder
