"""Coverage, novelty, diversity and serendipity against their definitions, query by query."""

from itertools import combinations

import numpy as np
import pytest

from ltr_objectives import evaluate_items
from ltr_objectives.errors import LTRError


def by_definition(scores, item, sizes, k, familiarity, vectors, labels, expected):
    shown, novelty, diversity, serendipity, first = set(), [], [], [], 0
    for size in sizes:
        rows = sorted(range(first, first + size), key=lambda row: (-scores[row], row))[:k]
        first += size
        shown |= {item[row] for row in rows}
        novelty.append(np.mean([-np.log2(familiarity[row]) for row in rows]))
        serendipity.append(np.mean([labels[row] > 0 and not expected[row] for row in rows]))
        pairs = [(vectors[a], vectors[b]) for a, b in combinations(rows, 2)]
        if pairs:
            cosines = [v @ w / np.sqrt((v @ v) * (w @ w)) for v, w in pairs]
            diversity.append(1 - np.mean(cosines))
    means = [np.mean(values) if values else np.nan for values in (novelty, diversity, serendipity)]
    return [len(shown), len(shown) / len(set(item)), *means]


@pytest.mark.parametrize("k", [1, 2, 3, 50])
@pytest.mark.parametrize("kind", [int, str])
def test_values_are_those_of_the_definitions(k, kind):
    rng = np.random.default_rng(k)
    sizes = np.array([1, 5, 2, 40, 7])
    n = int(sizes.sum())
    scores = rng.integers(0, 6, n).astype(float)  # with ties
    item = [kind(i) for i in rng.integers(0, 30, n)]
    familiarity, vectors = rng.uniform(0.01, 1, n), rng.normal(size=(n, 4))
    labels, expected = rng.integers(0, 3, n), rng.random(n) < 0.4
    found = evaluate_items(
        scores, item, sizes, k=k, familiarity=familiarity, vectors=vectors, labels=labels, expected=expected
    )
    assert list(found) == [f"{name}@{k}" for name in ("items", "coverage", "novelty", "diversity", "serendipity")]
    expected = by_definition(scores, item, sizes, k, familiarity, vectors, labels, expected)
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-12)


def test_ids_and_a_catalogue():
    qid, scores, item = [4, 4, 4, 9, 9], [1.0, 2.0, 3.0, 1.0, 2.0], [1, 2, 3, 1, 3]
    assert evaluate_items(scores, item, qid=qid, k=1, catalogue=10) == {"items@1": 1.0, "coverage@1": 0.1}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"item": [1]}, "item has 1 entries; pass one per row"),
        ({"item": [1, None]}, "item has no id in row 1"),
        ({"k": 0}, "k=0 must be a whole number of at least 1"),
        ({"catalogue": 1}, "catalogue=1 must be a whole number of at least 2"),
        ({"familiarity": [0.5]}, "familiarity has 1 entries; pass one per row"),
        ({"familiarity": [0.5, 0.0]}, "familiarity must be shares of users above 0 and at most 1"),
        ({"familiarity": [0.5, 3.0]}, "familiarity must be shares of users above 0 and at most 1"),
        ({"vectors": [1.0, 2.0]}, r"vectors must have shape \(rows, dimensions\)"),
        ({"vectors": [[1.0]]}, "vectors has 1 entries; pass one per row"),
        ({"vectors": [[1.0], [0.0]]}, "vectors must be finite and not all zeros, but row 1 is not"),
        ({"vectors": [[np.nan], [1.0]]}, "vectors must be finite and not all zeros, but row 0 is not"),
        ({"labels": [1, 0]}, "serendipity needs both labels= and expected="),
        ({"labels": [1, 0], "expected": [1, 0]}, "expected must be True and False"),
        ({"scores": [np.nan, 1.0]}, "scores must be finite"),
    ],
)
def test_wrong_input_is_refused(given, said):
    with pytest.raises(LTRError, match=said):
        evaluate_items(**{"scores": [1.0, 2.0], "item": [1, 2], "group": [2], **given})
