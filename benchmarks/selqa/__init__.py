"""SelQA (licence in NOTICE): which sentences of a section of Wikipedia answer a question."""

from pathlib import Path

import numpy as np

from ltr_objectives.datasets import RankingData


def load_selqa() -> RankingData:
    """Load 2,374 questions: 28,812 sentences with 23 lexical features; label 1 for those that answer (9 percent).

    The features of a sentence are BM25 with two settings, a Dirichlet language model, cosines, matched words, bigrams,
    trigrams and numbers, its length and its place; those of the question its length, and the least and largest idf.

    Source: Jurczyk, Zhai, Choi, "SelQA: A New Benchmark for Selection-Based Question Answering", 2016.

    >>> load_selqa()
    RankingData(28,812 rows, 2,374 queries, 23 features)
    """
    with np.load(Path(__file__).with_name("selqa.npz")) as file:
        X, labels, sizes = (file[name] for name in ("features", "labels", "sizes"))
    return RankingData(
        np.ascontiguousarray(X.T),
        labels.astype(np.float32),
        sizes.astype(np.int64),
        np.repeat(np.arange(len(sizes)), sizes),
    )
