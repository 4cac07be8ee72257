"""Mixtures: sums of objectives, their sizes, text form."""

import numpy as np
import pytest
from catalog import MIXTURES
from conftest import OBJECTIVES

from ltr_objectives import LambdaMART, LTRError, Mixture, Queries, YetiLoss, get_objective
from ltr_objectives.objectives.pairwise import PairwiseObjective
from ltr_objectives.objectives.typical import typical

PAIRWISE = [e for e in OBJECTIVES if isinstance(e, PairwiseObjective)]


@pytest.fixture
def data(rng):
    sizes = [1, 2, 9, 30, 100]
    labels = rng.integers(0, 4, sum(sizes)).astype(float)
    return Queries(labels, sizes, weight=rng.random(5) + 0.1), rng.normal(size=sum(sizes))


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_it_is_the_sum_of_its_parts(mixture, data):
    queries, scores = data
    for normalize in (True, False):
        mixture = Mixture(mixture.parts, mixture.weights, normalize)
        expected = np.zeros((2, queries.rows))
        for part, weight, *_ in mixture.members:
            size = typical(part, queries).gradient if normalize else 1.0  # for weights of mean 1
            expected += weight / size * np.array(part.compute(queries, scores, iteration=3))
        found = np.array(mixture.compute(queries, scores, iteration=3))
        assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


def test_a_weight_means_the_same_whatever_the_size_of_the_gradient(data):
    queries, scores = data
    mixture, larger = (Mixture(["yetiloss:map", LambdaMART("dcg", sigma=sigma)], [1, 2]) for sigma in (1.0, 1e-9))
    for objective in (mixture, larger):
        small, large = (typical(part, queries).gradient for part, *_ in objective.members)
        apart = Mixture(objective.parts[:1], [1 / small], False), Mixture(objective.parts[1:], [2 / large], False)
        size = [np.abs(m.compute(queries, scores)[0]).mean() for m in apart]
        assert 1.0 < size[1] / size[0] < 4.0


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("yetiloss:ndcg@10+.3*yetiloss:mrr", (1, 0.3)),
        (" yetiloss:ndcg@10 + 3e-1 * yetiloss:mrr ", (1, 0.3)),
        ("2*yetiloss:ndcg@10+1e+2*yetiloss:mrr", (2, 100)),
    ],
)
def test_text(text, weights):
    assert get_objective(text) == Mixture([YetiLoss("ndcg@10"), YetiLoss("mrr")], weights)


def test_a_number_with_a_plus_is_not_a_sum():
    assert get_objective("ranknet:sigma=1e+1").sigma == 10.0
    assert get_objective("ranknet:sigma=1e+1+ranknet").parts[0].sigma == 10.0
    assert get_objective("lambdaloss:weights=ndcg2++").weights == "ndcg2++"
    assert len(get_objective("lambdaloss:weights=ndcg2+++lambdaloss:weights=ndcg2++;mu=3+listnet").parts) == 3


@pytest.mark.parametrize(
    ("parts", "weights", "message"),
    [
        ("yetiloss:map", None, "parts must be a list of objectives"),
        (["yetiloss:map"], [np.nan], "weights=nan must be"),
        (["yetilos"], None, "did you mean"),
        ([3], None, "objective must be a string"),
    ],
)
def test_wrong_parts_are_refused(parts, weights, message):
    with pytest.raises(LTRError, match=message):
        Mixture(parts, weights)


@pytest.mark.parametrize("text", ["yetiloss:map+", "+yetiloss:map", "yetiloss:map++listnet", "2*3*listnet+listnet"])
def test_wrong_text_is_refused(text):
    with pytest.raises(LTRError):
        get_objective(text)


def test_clicks_are_corrected_in_every_part(data, rng):
    queries, scores = data
    mixture = MIXTURES[0]
    for clicks in ({"propensity": rng.uniform(0.1, 1.0, queries.rows)}, {"position": rng.integers(0, 9, queries.rows)}):
        seen = Queries((queries.labels > 0).astype(float), np.diff(queries.ptr), **clicks)
        parts = [weight * np.array(part.compute(seen, scores)) for part, weight, *_ in mixture.members]
        assert np.allclose(mixture.compute(seen, scores), np.sum(parts, axis=0), rtol=1e-12, atol=1e-15)
    with pytest.raises(LTRError, match="does not take propensity"):
        Mixture(["yetiloss", "listnet"]).compute(seen, scores)


@pytest.mark.parametrize("factor", [1e-3, 1e6])
def test_weights_of_rows_multiply_the_whole(factor, data):
    queries, scores = data
    mixture = Mixture(["yetiloss:map", "listnet"], [1, 2])
    heavy = Queries(queries.labels, np.diff(queries.ptr), weight=factor * queries.weight_by_row)
    found, expected = (np.array(mixture.compute(q, scores)) for q in (heavy, queries))
    assert np.allclose(found, factor * expected, rtol=1e-12)


def test_its_metric_is_that_of_its_first_part():
    assert str(Mixture(["yetiloss:map", "listnet"], [1, 2]).metric) == "map"
    assert Mixture(["listnet", "yetiloss:map"]).metric is None
