"""Offsets of positions: the maximum of their likelihood, what they recover, and trainings that start from them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from clicks import click_log, ranks
from rankers import LIBRARIES, NATIVE, everywhere, ranker
from scipy import optimize, stats
from trainings import release

from ltr_objectives import LTRError, LTRWarning, Queries, evaluate, position_bias
from ltr_objectives.adapters import bagged, position_offsets, refit
from ltr_objectives.datasets import make_ranking, make_ranking_fold
from ltr_objectives.position_bias import centred, estimate

one_library = pytest.mark.parametrize("library", ["lightgbm", *release(["xgboost", "catboost"])])
MARGIN = {"lightgbm": "init_score", "xgboost": "base_margin", "catboost": "baseline"}


def loss(x, clicks, sizes, position, expected, positions):
    """Return minus the penalised likelihood of (eta, c, d), by definition, list by list."""
    eta, c, d = x[0], x[1], x[2:]
    total, at = 0.5e-6 * eta**2 + 0.05 * c**2 + 1.5 * np.sum(d**2), 0
    for n in sizes:
        rows = slice(at, at + n)
        f = -eta * np.log1p(position[rows]) + d[position[rows]] + c * expected[rows]
        total -= clicks[rows] @ (f - np.log(np.sum(np.exp(f))))
        at += n
    return total


def test_the_estimate_is_the_maximum_and_its_errors_are_the_curvature_there(rng):
    sizes = rng.integers(1, 7, 40)
    position = np.concatenate([rng.permutation(n) for n in sizes])
    clicks, expected = rng.integers(0, 3, len(position)) * 1.0, rng.normal(size=len(position))
    found = estimate(Queries(clicks, sizes), position, expected)
    positions = position.max() + 1
    given = clicks, sizes, position, expected, positions
    best = optimize.minimize(loss, np.zeros(2 + positions), given, method="BFGS", options={"gtol": 1e-7}).x
    k = np.arange(positions)
    log = -best[0] * np.log1p(k) + best[2:] - best[2]
    np.testing.assert_allclose([found.eta, found.trust], best[:2], atol=1e-4)
    np.testing.assert_allclose(found.log_propensities, log, atol=1e-4)
    step = 1e-4 * np.eye(len(best))
    curvature = np.array([
        [(loss(best + a + b, *given) - loss(best + a - b, *given) - loss(best - a + b, *given)
          + loss(best - a - b, *given)) / 4e-8 for a in step] for b in step
    ])  # fmt: skip
    covariance = np.linalg.inv(curvature)
    np.testing.assert_allclose([found.eta_error, found.trust_error], np.sqrt(np.diag(covariance)[:2]), rtol=1e-3)
    to_log = np.hstack([-np.log1p(k)[:, None], np.zeros((positions, 1)), np.eye(positions)])
    to_log[:, 2] -= 1
    np.testing.assert_allclose(found.errors, np.sqrt(np.diag(to_log @ covariance @ to_log.T)), rtol=1e-3, atol=1e-6)


def test_all_clicks_of_a_list_in_every_order_give_the_true_propensities():
    """Each click pattern as often as it is probable; the ridge moves the logarithms by less than 0.02."""
    theta, gamma = np.array([1.0, 0.5, 0.25]), np.array([0.5, 0.25, 0.5])
    clicks, position, expected = [], [], []
    for order in itertools.permutations(range(3)):
        chance = theta[list(order)] * gamma
        for pattern in itertools.product((0.0, 1.0), repeat=3):
            times = 1024 * np.prod(np.where(pattern, chance, 1 - chance))
            assert times == int(times)
            clicks += [pattern] * int(times)
            position += [order] * int(times)
            expected += [np.log(gamma)] * int(times)
    clicks, position, expected = map(np.ravel, (clicks, position, expected))
    found = estimate(Queries(clicks, np.full(len(clicks) // 3, 3)), position, expected)
    np.testing.assert_allclose(found.log_propensities, np.log(theta), atol=0.02)
    np.testing.assert_allclose(found.trust, 1.0, atol=0.02)


def test_positions_far_down_follow_the_curve_and_may_count_from_1(rng, monkeypatch):
    monkeypatch.setattr(position_bias, "BENT", bent := 16)
    sizes = np.full(10, bent + 20)
    position = np.tile(np.arange(bent + 20), 10)
    clicks = rng.random(len(position)) < 1.0 / (1.0 + position)
    found, again = (estimate(Queries(clicks, sizes), position + first) for first in (0, 1))
    assert (found.first, again.first) == (0, 1)
    np.testing.assert_array_equal(found.offsets, again.offsets)
    np.testing.assert_array_equal(found.at(position), again.at(position + 1))
    tail = found.log_propensities[bent:]
    np.testing.assert_allclose(np.diff(tail), -found.eta * np.diff(np.log1p(np.arange(bent, bent + 20))), rtol=1e-9)
    assert found.at([10**6 - 1])[0] == found.offsets[-1]


def test_the_likelihood_of_clicks_is_that_of_its_definition(rng):
    sizes = rng.integers(1, 9, 50)
    position = np.concatenate([rng.permutation(n) for n in sizes])
    clicks, scores = rng.integers(0, 2, len(position)) * 1.0, rng.normal(size=len(position))
    found = estimate(Queries(clicks, sizes), position)
    total, at = 0.0, 0
    for n in sizes:
        rows = slice(at, at + n)
        f = scores[rows] + found.log_propensities[position[rows]]
        total += clicks[rows] @ np.log(np.exp(f) / np.exp(f).sum())
        at += n
    expected = total / clicks.sum()
    assert found.log_likelihood(clicks, scores, position, group=sizes) == pytest.approx(expected, rel=1e-12)
    shifted = scores + np.repeat(rng.normal(size=50), sizes)
    assert found.log_likelihood(clicks, shifted, position, group=sizes) == pytest.approx(expected, rel=1e-9)


# data with features that the old ranking knew

pytestmark = pytest.mark.filterwarnings("ignore:.*queries have zero gradient")  # most have no click


def world(seed=0, queries=2000, noise=2.0, eta=1.0):
    """Return features and queries, where the documents stood by three features and noise, and clicks."""
    X, y, group, qid = make_ranking(queries, mean_length=12, features=10, seed=seed)
    rng = np.random.default_rng(seed)
    position = ranks(X[:, :3].sum(1) + noise * rng.normal(size=len(y)), group)
    clicks = (rng.random(len(y)) < np.array([0.1, 0.2, 0.4, 0.6, 0.9])[y.astype(int)] * (1.0 + position) ** -eta) * 1.0
    return X, clicks, position, qid


@pytest.mark.parametrize(("library", "eta"), [*((name, 1.0) for name in LIBRARIES), ("lightgbm", 0.5)])
def test_the_estimate_is_near_the_truth_although_the_features_know_the_old_ranking(library, eta):
    """By three of its standard errors, and 0.1 for the features that the regression misses."""
    X, clicks, position, qid = world(eta=eta)
    found = position_offsets(X, clicks, position, qid=qid, library=library, n_threads=1)
    assert abs(found.eta - eta) < 3 * found.eta_error + 0.1
    assert 0.2 < found.r2 < 0.95
    assert found.advice == "" or eta < 1
    assert found.documents.sum() == len(clicks)
    assert found.clicks.sum() == clicks.sum()


def test_the_advice_tells_the_three_cases_in_which_a_correction_does_not_help():
    X, clicks, position, qid = world()
    unbiased = np.random.default_rng(1).random(len(clicks)) < 0.2
    known = np.column_stack([X, centred(-np.log1p(position), Queries(clicks, qid=qid))])
    cases = {"no position bias": (X, unbiased, position), "determine": (known, clicks, position)}
    for text, data in cases.items():
        assert text in position_offsets(*data, qid=qid, library="lightgbm", n_threads=1).advice
    X, y, group, qid = make_ranking(2000, mean_length=12, features=10)
    rng = np.random.default_rng(0)
    position = ranks(y + 0.3 * rng.normal(size=len(y)), group)
    clicks = rng.random(len(y)) < np.array([0.03, 0.08, 0.2, 0.4, 0.6])[y.astype(int)] / (1.0 + position)
    found = position_offsets(np.column_stack([X, y]), clicks, position, qid=qid, library="lightgbm", n_threads=1)
    assert "nearly right" in found.advice


def test_lists_of_one_document_show_no_bias():
    found = position_offsets(np.zeros((4, 1)), [1, 0, 0, 1], np.zeros(4), group=[1] * 4, library="lightgbm")
    assert found.r2 == 0
    assert "no position bias" in found.advice


@everywhere
def test_an_old_ranking_that_knew_a_part_is_corrected_in_full(library):
    """One feature ranked the documents; another one, which it ignored, explains more clicks."""
    rng, sizes = np.random.default_rng(0), np.full(1500, 12)
    X = rng.normal(size=(sizes.sum(), 5))
    position = ranks(X[:, 0] + 0.5 * rng.normal(size=len(X)), sizes)
    clicks = rng.random(len(X)) < (1.0 + position) ** -0.5 / (1.0 + np.exp(1.0 - X[:, 0] - 2.0 * X[:, 1]))
    found = position_offsets(X, clicks, position, group=sizes, library=library, n_threads=1)
    assert found.r2 * (found.trust - found.trust_error) > 0.25 * found.eta
    assert (found.left, found.advice) == (0.0, "")
    np.testing.assert_array_equal(found.offsets, found.log_propensities)


@everywhere
@pytest.mark.parametrize("native", [False, True])
def test_a_training_starts_from_the_offsets_and_predicts_without(library, native):
    X, clicks, position, qid = world(queries=150)
    objective = NATIVE[library] if native else "lambdamart"

    def trained(**given):
        return ranker(library, objective).fit(X, clicks, qid=qid, **given)

    made = trained(position=position)
    start = made.position_offsets_.at(position).astype(np.float32)
    np.testing.assert_array_equal(made.predict(X), trained(**{MARGIN[library]: start}).predict(X))
    assert not np.allclose(made.predict(X), trained().predict(X))
    own = np.linspace(0, 1, len(clicks)).astype(np.float32)
    both = trained(position=position, **{MARGIN[library]: own})
    np.testing.assert_allclose(both.predict(X), trained(**{MARGIN[library]: own + start}).predict(X), atol=1e-6)


@everywhere
def test_eval_sets_need_no_positions(library):
    X, clicks, position, qid = world(queries=150)
    given = {"eval_set": [(X, clicks)], "eval_qid": [qid], "early_stopping_rounds": 3}
    made = ranker(library, "lambdamart", eval_metric="ndcg@5").fit(X, clicks, qid=qid, position=position, **given)
    values = made.evals_result_["validation_0"]["ndcg@5"]
    assert max(values) == pytest.approx(evaluate("ndcg@5", made.predict(X), clicks, qid=qid), abs=1e-6)


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "catboost"])
def test_a_continued_training_starts_from_the_offsets_too(library):
    X, clicks, position, qid = world(queries=150)
    objective = "lambdamart"  # without random numbers
    whole = ranker(library, objective, n_estimators=8).fit(X, clicks, qid=qid, position=position)
    first = ranker(library, objective, n_estimators=4).fit(X, clicks, qid=qid, position=position)
    again = ranker(library, objective, n_estimators=4).fit(X, clicks, qid=qid, position=position, init_model=first)
    np.testing.assert_allclose(again.predict(X), whole.predict(X), atol=1e-5)


@everywhere
def test_refit_to_its_own_data_changes_nothing(library):
    leaves = {"catboost": {}, "lightgbm": {"min_child_samples": 2}, "xgboost": {"min_child_weight": 0}}[library]
    X, clicks, position, qid = world(queries=150)
    model = ranker(library, "lambdamart", **leaves).fit(X, clicks, qid=qid, position=position)
    again = refit(model, X, clicks, qid=qid, position=position, decay_rate=0.0)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-5)


@one_library
def test_bags_auto_and_bounds_read_positions(library):
    X, clicks, position, qid = world(queries=150)
    bags = bagged(ranker(library, None), X, clicks, qid=qid, position=position, bags=2)
    assert bags.position_offsets_.eta > 0
    assert not np.allclose(bags.predict(X), bagged(ranker(library, None), X, clicks, qid=qid, bags=2).predict(X))
    given = {"qid": qid, "eval_set": [(X, clicks)], "eval_qid": [qid]}
    for params in (
        {"objective": "auto"},
        {"objective": None, "eval_metric": ["map", "ndcg@3"], "bounds": {"ndcg@3": 0.1}},
    ):
        made = ranker(library, **params)
        with_positions = made.fit(X, clicks, position=position, **given).predict(X)
        assert made.position_offsets_.eta > 0
        assert "queryrmse" not in {candidate.objective.lower() for candidate in getattr(made, "report_", ())}
        assert not np.allclose(with_positions, made.fit(X, clicks, **given).predict(X))
        assert not hasattr(made, "position_offsets_")


@everywhere
def test_tables_with_categories_are_read(library):
    X, clicks, position, qid = world(queries=150)
    table = pd.DataFrame(X).add_prefix("x").assign(kind=pd.Categorical(np.where(X[:, 0] > 0, "a", "b")))
    made = ranker(library, "yetiloss:ndcg").fit(table, clicks, qid=qid, position=position)
    expected = ranker(library, "yetiloss:ndcg").fit(table, clicks, qid=qid, position=pd.Series(position + 1))
    np.testing.assert_array_equal(made.predict(table), expected.predict(table))


@pytest.mark.parametrize("objective", ["queryrmse", "listnet", "listmle", "xendcg", "yetiloss + 0.1*rmse", "l2"])
def test_objectives_that_fit_documents_without_a_click_are_refused(objective):
    X, clicks, position, qid = world(queries=20)
    with pytest.raises(LTRError, match="position"):
        ranker("lightgbm", objective).fit(X, clicks, qid=qid, position=position)


def test_labels_that_are_no_clicks_and_advice_are_warned_of():
    X, clicks, position, qid = world(queries=150)
    with pytest.warns(LTRWarning, match="with position, labels are clicks"):
        ranker("lightgbm").fit(X, 2 * clicks, qid=qid, position=position)
    unbiased = (np.random.default_rng(0).random(len(clicks)) < 0.1) * 1.0
    with pytest.warns(LTRWarning, match="position= corrects nothing"):
        made = ranker("lightgbm").fit(X, unbiased, qid=qid, position=position)
    np.testing.assert_array_equal(made.predict(X), ranker("lightgbm").fit(X, unbiased, qid=qid).predict(X))


@one_library
def test_a_correction_ranks_better(library):
    shares = (0.45, 0.25, 0.15, 0.1, 0.05)
    train, _, test = make_ranking_fold((4000, 1, 1500), 1, features=20, mean_length=10, shares=shares)
    log = click_log(train, 1)

    def values(**how):
        """Return true NDCG@10 by query."""
        model = ranker(library, "yetiloss:ndcg", n_estimators=40, learning_rate=0.1).fit(
            train.X, log.clicks, qid=train.qid, **how
        )
        return evaluate("ndcg@10", model.predict(test.X), test.y, test.group, per_query=True)

    difference = values(position=log.position) - values()
    assert difference.mean() > 0
    assert stats.ttest_1samp(difference, 0).pvalue < 0.01


@everywhere
def test_a_half_of_the_queries_may_have_one_document_each(library):
    X, clicks, position, qid = world(queries=100)
    first = np.concatenate([[True], qid[1:] != qid[:-1]])
    kept = (np.unique(qid, return_inverse=True)[1] % 2 == 0) | first
    found = position_offsets(X[kept], clicks[kept], position[kept], qid=qid[kept], library=library, n_threads=1)
    assert np.isfinite(found.offsets).all()
