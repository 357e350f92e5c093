"""TF-IDF and BM25 as Dai et al. use them: texts without titles, NLTK's words.

Only the defaults of some options differ from those of `BM25` and `TFIDF`, which explain them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ranktilt.rankers.lexical.bm25 import BM25, TFIDF


@dataclass(frozen=True, kw_only=True)
class DaiBM25(BM25):
    """BM25 as Dai et al. (2024) use it.

    k1 is 2, b is .75, and the idf is ``ln(N/df)``. Titles are not read, and words are NLTK's.
    """

    name: ClassVar[str] = "bm25:dai"
    text: str = "text"
    analyzer: str = "paper"
    k1: float = 2.0
    method: str = "atire"


@dataclass(frozen=True, kw_only=True)
class DaiTFIDF(TFIDF):
    """TF-IDF as Dai et al. (2024) use it.

    The formula is that of `TFIDF`. Titles are not read, and words are NLTK's.
    """

    name: ClassVar[str] = "tfidf:dai"
    text: str = "text"
    analyzer: str = "paper"
