"""A generated collection of NQ320K's size: twins of 190 words and queries of about 9, from a
Zipf-like vocabulary.

It stands in for data that cannot be redistributed where only the size and the statistics of words
matter. What it is made of: 45 % of the words are function words, the others follow Zipf's law over
400,000 forms with endings that a stemmer removes; sentences have capitals, commas and full stops;
the second version of a document has 40 % of its words drawn anew; each query takes its content
words from one document, and both versions of it are relevant.

Where real words matter more than a layout, `shuffled` makes any number of documents of another
collection's sentences.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import ranktilt as rt

Ints = npt.NDArray[np.int64]
Rankings = tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.float64]]
SOURCES = ("human", "llm")


def _split(words: str) -> list[str]:
    return words.split()


FUNCTION = _split(
    "the of and to in a is was for on as by with that it from at his an be which are he this or "
    "were not had has "
    "also but have their its they after who one been first two when her she into other more than "
    "during such some "
    "there while may then him all about where between however no would over through most later "
    "these only will can "
    "many being under before them both until so if up out since what because well any each same "
    "very made did could "
    "due several around against within another you we do those how i me my your our us why without "
    "near among whose"
)
ASKING = _split("who when what where how which why")
QUESTION = _split("is was did does do are were the of in a to on for from has have by at")
ONSETS = _split("b c d f g h j k l m n p r s t v w br ch cl dr gr pl pr sh st th tr")
SYLLABLES = [onset + vowel for onset in ONSETS for vowel in "aeiou"]
CODAS = ["", "n", "r", "l", "s", "t", "m", "nd", "rt", "ck"]
ENDINGS = ["", "s", "ed", "ing", "er", "ly", "ation", "al", "ness", "ment"]
ENDING_SHARE = [0.5, 0.18, 0.1, 0.08, 0.04, 0.03, 0.03, 0.02, 0.01, 0.01]
CHUNK = 8192


@dataclass(frozen=True)
class Size:
    """How much to make; the defaults are NQ320K's."""

    pairs: int = 109_739
    queries: int = 7_830
    words: int = 190
    query_words: int = 9
    vocabulary: int = 400_000
    resampled: float = 0.4


FULL = Size()
QUICK = Size(pairs=300, queries=40, vocabulary=5_000)


def forms(count: int, rng: np.random.Generator) -> list[str]:
    """Distinct content words, the frequent ones short; one in 25 is a number."""
    words: dict[str, None] = {}
    syllables, codas, endings = np.array(SYLLABLES), np.array(CODAS), np.array(ENDINGS)
    while len(words) < count:
        n = count // 4 + 64
        longest = 2 if len(words) < count // 20 else 4
        parts = rng.choice(syllables, size=(n, longest))
        keep = rng.integers(1, longest + 1, size=n)
        ends = np.char.add(rng.choice(codas, size=n), rng.choice(endings, size=n, p=ENDING_SHARE))
        numbers = rng.integers(1, 10**6, size=n)
        for row, length, end, number, digit in zip(
            parts, keep, ends, numbers, rng.random(n) < 0.04, strict=True
        ):
            words.setdefault(str(number) if digit else "".join(row[:length]) + str(end))
    return [w for w in words if w not in FUNCTION][:count]


class Words:
    """Numbers of words and their probabilities: first the function words, then the content words by
    rank.
    """

    def __init__(self, size: Size, seed: int) -> None:
        content = forms(size.vocabulary, np.random.default_rng([seed, 0]))
        self.names = [*FUNCTION, *content]
        function = 1 / (np.arange(len(FUNCTION)) + 2.0)
        zipf = 1 / (np.arange(len(content)) + 30.0)
        share = np.concatenate([0.45 * function / function.sum(), 0.55 * zipf / zipf.sum()])
        self.cumulative = np.cumsum(share) / share.sum()
        # Each word as it is, with a comma and with a full stop; then the same with a capital.
        plain = pl.Series(self.names)
        capital = plain.str.head(1).str.to_uppercase() + plain.str.slice(1)
        self.written = pl.concat([w + mark for w in (plain, capital) for mark in ("", ",", ".")])

    def draw(self, count: int, rng: np.random.Generator) -> Ints:
        """Numbers of independent words."""
        return np.searchsorted(self.cumulative, rng.random(count)).clip(max=len(self.names) - 1)

    def write(self, words: Ints, marks: Ints, capitals: npt.NDArray[np.bool_]) -> pl.Series:
        """Texts from rows of word numbers, with 0, 1 or 2 for nothing, a comma or a full stop
        behind each.
        """
        rows = (3 * capitals + marks) * len(self.names) + words
        flat = self.written.gather(rows.ravel())
        return flat.reshape(rows.shape).arr.join(" ")


def documents(size: Size, seed: int, words: Words) -> tuple[list[pl.Series], list[pl.Series], Ints]:
    """Texts of both sources in chunks, and the word numbers of those first documents that have a
    query.
    """
    human, llm, origins = [], [], []
    for start in range(0, size.pairs, CHUNK):
        rng = np.random.default_rng([seed, 1, start])
        shape = (min(CHUNK, size.pairs - start), size.words)
        numbers = words.draw(shape[0] * shape[1], rng).reshape(shape)
        marks = np.searchsorted([0.87, 0.95], rng.random(shape))
        marks[:, -1] = 2
        after_stop = np.ones(shape, dtype=bool)
        after_stop[:, 1:] = marks[:, :-1] == 2
        capitals = after_stop | ((rng.random(shape) < 0.1) & (numbers >= len(FUNCTION)))
        rewritten = np.where(
            rng.random(shape) < size.resampled,
            words.draw(numbers.size, rng).reshape(shape),
            numbers,
        )
        human.append(words.write(numbers, marks, capitals))
        llm.append(words.write(rewritten, marks, capitals))
        origins.append(numbers[: max(size.queries - start, 0)])
    return human, llm, np.concatenate(origins)


def questions(size: Size, seed: int, words: Words, origins: Ints) -> list[str]:
    """One query for each of the first documents: an asking word, function words and words of the
    document.
    """
    rng = np.random.default_rng([seed, 2])
    texts = []
    for numbers in origins[: size.queries]:
        length = int(rng.integers(size.query_words - 3, size.query_words + 4))
        content = np.unique(numbers[numbers >= len(FUNCTION)])
        taken = rng.choice(content, size=min(-(-length // 2), len(content)), replace=False)
        filling = [str(rng.choice(QUESTION)) for _ in range(max(length - len(taken) - 1, 0))]
        rest = [*filling, *(words.names[w] for w in taken)]
        texts.append(
            " ".join([str(rng.choice(ASKING)), *(rest[i] for i in rng.permutation(len(rest)))])
        )
    return texts


def judged_pairs(size: Size) -> pl.DataFrame:
    """Judgments: query ``i`` asks for document ``i``, in both versions."""
    number = pl.int_range(size.queries, eager=True)
    sides = [
        pl.DataFrame(
            {
                "query_id": pl.select(pl.format("Q{}", number)).to_series(),
                "doc_id": pl.select(pl.format("D{}-{}", number, pl.lit(source))).to_series(),
            }
        )
        for source in SOURCES
    ]
    return pl.concat(sides).with_columns(grade=pl.lit(1, dtype=pl.Int32))


def collection(size: Size = FULL, *, seed: int = 0, with_text: bool = True) -> rt.Collection:
    """Make the collection in memory.

    Parameters
    ----------
    size : Size, optional
        How much of it.
    seed : int, optional
        Of every draw.
    with_text : bool, optional
        Whether texts are made; without them only ids, twins and judgments are there.
    """
    number = pl.int_range(size.pairs, eager=True)
    if with_text:
        words = Words(size, seed)
        human, llm, origins = documents(size, seed, words)
        texts, queries = [pl.concat(human), pl.concat(llm)], questions(size, seed, words, origins)
    else:
        empty = pl.repeat("", size.pairs, eager=True)
        texts, queries = [empty, empty], [""] * size.queries
    origin = pl.select(pl.format("D{}-human", number)).to_series()
    docs = [
        pl.DataFrame(
            {
                "id": pl.select(pl.format("D{}-{}", number, pl.lit(source))).to_series(),
                "text": text,
                "source": pl.repeat(source, size.pairs, eager=True),
                "origin": origin,
            }
        )
        for source, text in zip(SOURCES, texts, strict=True)
    ]
    names = [f"Q{i}" for i in range(size.queries)]
    spec = {"path": "generated", "split": "test", "seed": seed}
    return rt.Collection(
        pl.concat(docs), pl.DataFrame({"id": names, "text": queries}), judged_pairs(size), spec
    )


def rankings(
    size: Size, *, seed: int, depth: int = 1000
) -> tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Offsets, document rows and scores of a run over `collection`: twins near each other, a fifth
    of them tied.

    Half as many pairs as the depth, and a few more, are scored for each query; its own pair scores
    somewhat higher.
    """
    pairs = min(depth // 2 + 20, size.pairs)
    stride = max(size.pairs // (pairs + 1), 1)
    depth = min(depth, 2 * pairs)
    docs = np.empty((size.queries, depth), dtype=np.int32)
    scores = np.empty((size.queries, depth))
    for query in range(size.queries):
        rng = np.random.default_rng([seed, query])
        pair = (query + int(rng.integers(1, stride + 1)) * np.arange(pairs)) % size.pairs
        level = rng.gamma(2.0, 2.0, size=pairs)
        level[0] += 6.0
        second_level = np.where(
            rng.random(pairs) < 0.2, level, level + rng.normal(0.0, 0.5, size=pairs)
        )
        both = np.concatenate([level, second_level])
        best = np.argsort(-both, kind="stable")[:depth]
        docs[query] = np.concatenate([pair, pair + size.pairs])[best]
        scores[query] = both[best]
    return np.arange(size.queries + 1) * depth, docs.ravel(), scores.ravel()


def sentences(texts: pl.Series) -> pl.Series:
    """Sentences of texts, as full stops divide them."""
    pool_sentences = (
        texts.str.extract_all(r"[^.!?]+[.!?]+").explode().drop_nulls().str.strip_chars()
    )
    return (
        pool_sentences.filter(pool_sentences.str.len_bytes() > 20)
        .unique(maintain_order=True)
        .alias("sentence")
    )


def shuffled(pool: pl.Series, count: int, *, words: int = 190, seed: int = 0) -> pl.Series:
    """Make new documents of sentences drawn from a pool: with real words in their real proportions,
    of any number.

    Parameters
    ----------
    pool : polars.Series
        Sentences.
    count : int
        How many documents.
    words : int, optional
        Mean length.
    seed : int, optional
        Of every draw; the first documents are the same whatever their number.
    """
    sentence_count = max(round(words / (pool.str.count_matches(" ").mean() + 1)), 1)
    parts = []
    for start in range(0, count, CHUNK):
        drawn = np.random.default_rng([seed, 3, start]).integers(
            len(pool), size=(CHUNK, sentence_count)
        )
        parts.append(
            pool.gather(drawn[: count - start].ravel()).reshape((-1, sentence_count)).arr.join(" ")
        )
    return pl.concat(parts).alias("text")


def main() -> None:
    """Write the collection as a BEIR folder, or only say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, help="where to write it as BEIR; nothing is written without"
    )
    parser.add_argument("--quick", action="store_true", help="a tiny one")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    start = time.perf_counter()
    texts = collection(QUICK if args.quick else FULL, seed=args.seed)
    if args.folder is not None:
        rt.save(texts, args.folder)
    print(f"{texts!r} in {time.perf_counter() - start:.1f} s")
    print(texts.docs["text"][0][:200])
    print(*texts.queries["text"][:3], sep="\n")


if __name__ == "__main__":
    main()
