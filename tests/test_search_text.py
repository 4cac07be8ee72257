"""Lexical features of texts against their formulas."""

import math

import numpy as np
import pytest

from benchmarks import search_text


def test_features_are_those_of_their_formulas(monkeypatch):
    monkeypatch.setattr(search_text, "_stem", lambda word: word)
    texts = search_text.Texts(["red cat", "old dog 7"], {"text": ["red red cat sat", "a dog 7 ran", "birds"]},
                              np.array([[0, 0], [0, 1], [1, 1]]), np.array([1, 0, 1]))  # fmt: skip
    X, names = search_text.features(texts)
    of = dict(zip(names, X.T, strict=True))
    idf, mean = math.log1p((3 - 1 + 0.5) / 1.5), 9 / 3
    norm = 1.2 * (0.25 + 0.75 * 4 / mean)
    first = idf * (2 * 2.2 / (2 + norm) + 2.2 / (1 + norm))
    assert of["text_bm25_0.75"] == pytest.approx([first, 0, 2 * idf * 2.2 / (1 + norm)])
    dirichlet = math.log1p(2 / (1000 * 2 / 9)) + math.log1p(1 / (1000 / 9)) + 2 * math.log(1000 / 1004)
    assert of["text_dirichlet"][0] == pytest.approx(dirichlet, rel=1e-4)
    assert of["text_matched"].tolist() == [2, 0, 2]
    assert of["text_matched_share"] == pytest.approx([1, 0, 2 / 3])
    assert of["text_tf"].tolist() == [3, 0, 2]
    weights = np.array([1 + math.log(2), 1, 1])
    assert of["text_cosine"][0] == pytest.approx(weights[:2].sum() / np.linalg.norm(weights) / math.sqrt(2), rel=1e-5)
    assert of["text_bigrams_share"] == pytest.approx([1, 0, 0.5])
    assert of["text_phrase"].tolist() == [1, 0, 0]
    assert of["text_last_word_at"].tolist() == [2, 999, 2]
    assert of["text_numbers"].tolist() == [0, 0, 1]
    assert np.isfinite(X).all()
