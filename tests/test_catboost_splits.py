"""The splits that CatBoost chooses for our objectives, against all possible splits."""

import contextlib
import itertools

import numpy as np
import pytest
from catboost import CatBoost, CatBoostError, Pool
from catboost_fits import DEFAULTS, NEWTON, arrays, fit, make_pool, raw, sampled

from ltr_objectives import get_objective, registry
from ltr_objectives.adapters import CatBoostRanker, catboost_objective
from ltr_objectives.adapters._callables import ObjectiveCallable
from ltr_objectives.adapters._catboost_passes import Passes
from ltr_objectives.errors import LTRError, LTRWarning
from ltr_objectives.queries import Queries

STUMP = {
    "iterations": 1, "depth": 1, "score_function": "L2", "random_strength": 0, "l2_leaf_reg": 0,
    "bootstrap_type": "No", "eval_metric": "RMSE",
}  # fmt: skip


WEIGHTS = [
    (None, False, 1),
    *itertools.product(("weight", "group_weight"), (False, True), (0.01, 1, 1000)),  # given as, uneven, size
]
SIZES = 0.0, 1e-310, 1e-42, 1e-30, 1e30, 1e60, 1e300
# nearly all heads of lists of these data have a relevant document, so that hit has no gradient; splits are tested still
some_learn_nothing = pytest.mark.filterwarnings("ignore:.*queries have zero gradient:ltr_objectives.errors.LTRWarning")
NOISELESS = [o for o in (get_objective(name).without_noise() for name in registry.objectives()) if o is not None]


def gain(grad, weight, right, l2):
    """The score of a split; 0 without a split."""
    return sum(grad[side].sum() ** 2 / (weight[side].sum() + l2) for side in (right, ~right) if weight[side].any())


def coarse(rows=900):
    """Features of six values, so that few splits are possible, and scores to start from."""
    X, y, qid = arrays(rows)
    X = np.clip(np.round(2 * X), -3, 2)
    return X, y, qid, np.float32(np.random.default_rng(1).normal(size=rows))


@some_learn_nothing
@pytest.mark.parametrize(("newton", "l2"), [(True, 3), (False, 0)])
def test_the_best_split_by_gradients_and_hessians_or_numbers_of_rows(any_objective, newton, l2):
    X, y, qid, start = coarse()
    y = y / 4 * min(4.0, any_objective.label_limit or 4.0)
    pool = Pool(X, y, group_id=qid, baseline=start)
    loss = catboost_objective(any_objective, pool, newton_splits=newton)
    stump = fit(loss, pool, params={**STUMP, "l2_leaf_reg": l2})
    chosen = stump.calc_leaf_indexes(pool)[:, 0] == 1
    queries = Queries(np.float32(y), np.unique(qid, return_counts=True)[1])
    grad, hess = catboost_objective(any_objective, pool).gradients(queries, start.astype(float))
    weight = np.maximum(hess, 0.0) if newton else np.ones(len(y))
    best = max(gain(grad, weight, X[:, j] > v, l2) for j in range(X.shape[1]) for v in range(-3, 2))
    assert gain(grad, weight, chosen, l2) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(("weights", "l2", "strength"), sampled([*itertools.product(WEIGHTS, (3, 0), (1, 0))], 7))
def test_trees_are_those_of_the_same_loss_in_catboost(weights, l2, strength):
    given, uneven, factor = weights
    _, _, qid = arrays(1500)
    weight = factor * (np.random.default_rng(2).uniform(0.5, 2.0, 1500)[qid] if uneven else np.ones(1500))
    pool = make_pool(1500, **({} if given is None else {given: weight}))
    own = {"group_weight": weight} if given == "group_weight" else {}
    losses = "QueryRMSE", catboost_objective("queryrmse", pool, **own)
    params = {**NEWTON, "random_strength": strength, "l2_leaf_reg": l2}
    native, ours = (fit(loss, pool, params=params) for loss in losses)
    assert np.ptp(raw(native, pool)) > 1
    np.testing.assert_allclose(raw(ours, pool), raw(native, pool), rtol=0, atol=1e-6)


@pytest.mark.parametrize("factor", [1, 1000])
def test_the_ranker_weighs_as_catboost_s_own_loss_does(factor):
    X, y, qid = arrays(900)
    params = {"iterations": 50, "learning_rate": 0.1, "thread_count": 2, "bootstrap_type": "No", "random_strength": 1}
    params["l2_leaf_reg"] = 3
    rankers = (CatBoostRanker(objective=name, **params) for name in ("QueryRMSE", "queryrmse"))
    native, ours = (r.fit(X, y, qid=qid, sample_weight=np.full(len(y), factor)).predict(X) for r in rankers)
    np.testing.assert_allclose(ours, native, rtol=0, atol=1e-6)


def test_the_ranker_adds_no_noise_to_the_scores_of_splits():
    X, y, qid = arrays(900)

    def scores(seed, **params):
        ranker = CatBoostRanker(objective="ranknet", iterations=5, random_seed=seed, thread_count=2, **params)
        return ranker.fit(X, y, qid=qid).predict(X)

    np.testing.assert_array_equal(scores(0), scores(1))
    assert not np.array_equal(scores(0, random_strength=1), scores(1, random_strength=1))


@pytest.mark.parametrize("objective", sampled(NOISELESS, 3))
def test_weights_have_no_unit(objective):
    """CatBoost multiplies ``l2_leaf_reg`` by the mean weight, in splits and in leaves."""
    X, y, qid, _ = coarse(600)
    y = y / 4 * min(4.0, objective.label_limit or 4.0)
    params = {"random_strength": 0, "bootstrap_type": "No", "eval_metric": "RMSE", "iterations": 5, **NEWTON}

    def scores(factor):
        pool = Pool(X, y, group_id=qid, weight=np.full(len(y), factor))
        return raw(fit(catboost_objective(objective, pool), pool, params=params), X)

    one = scores(1.0 + 1e-3)  # weights of 1 would count as a pool without weights
    for factor in (2.0**-7, 2.0**10):
        np.testing.assert_allclose(scores((1.0 + 1e-3) * factor), one, rtol=0, atol=1e-6 * np.ptp(one))


@pytest.mark.parametrize(
    ("bootstrap", "size"), sampled([*itertools.product(("No", "Bernoulli", "Bayesian"), SIZES)], 4)
)
def test_hessians_of_any_size_give_splits(bootstrap, size, monkeypatch):
    """CatBoost's weights are float32, and it divides by their sums."""
    X, y, qid, _ = coarse()
    grad = np.mean(y) - y
    monkeypatch.setattr(ObjectiveCallable, "gradients", lambda *_, **__: (grad, np.full(len(y), size)))
    pool = Pool(X, y, group_id=qid)
    params = {"iterations": 3, "bootstrap_type": bootstrap, "eval_metric": "RMSE", "learning_rate": 1}
    model = fit(catboost_objective("rmse", pool), pool, params=params)
    assert np.ptp(model.calc_leaf_indexes(pool), axis=0).all()
    assert np.corrcoef(raw(model, pool), y)[0, 1] > 0.3


@some_learn_nothing
def test_only_the_splits_see_the_hessians(any_objective):
    X, y, qid, start = coarse()
    y = y / 4 * min(4.0, any_objective.label_limit or 4.0)
    pool = Pool(X, y, group_id=qid, baseline=start)
    params = {"iterations": 1, "leaf_estimation_method": "Gradient", "l2_leaf_reg": 0, "learning_rate": 1}
    model = fit(catboost_objective(any_objective, pool), pool, params={**params, "eval_metric": "RMSE"})
    queries = Queries(np.float32(y), np.unique(qid, return_counts=True)[1])
    grad, _ = catboost_objective(any_objective, pool).gradients(queries, start.astype(float))
    leaves = model.calc_leaf_indexes(pool)[:, 0]
    means = np.array([-grad[leaves == leaf].mean() for leaf in leaves])
    np.testing.assert_allclose(raw(model, X), means, rtol=1e-5, atol=1e-6 * np.abs(means).max())
    counts = model.get_leaf_weights()
    np.testing.assert_allclose(counts, np.bincount(leaves, minlength=len(counts)), atol=1e-5)
    assert (np.array(pool.get_weight()) == 1).all()


@pytest.mark.parametrize("kind", ["plain", "pairs", "quantized"])
def test_catboost_s_own_losses_and_metrics_on_the_pool_stay_as_they_were(kind, capfd):
    pools = [make_pool(600, **({"pairs": [(1, 0), (0, 2)]} if kind == "pairs" else {})) for _ in range(2)]
    used = pools[1]
    for pool in pools if kind == "quantized" else []:
        pool.quantize()
    params = {**DEFAULTS, "iterations": 3, "custom_metric": ["MRR", "NDCG:top=3"], "verbose": 1}
    with pytest.warns(LTRWarning, match="the 2 pairs of the pool") if kind == "pairs" else contextlib.nullcontext():
        loss = catboost_objective("lambdamart", used)
    ours = CatBoost({**params, "loss_function": loss}).fit(used)
    assert all("use_weights" not in name for name in ours.evals_result_["learn"])
    assert (np.array(used.get_weight()) == 1).all()
    for loss in ("YetiRank", "QueryRMSE", *(["PairLogit"] if kind == "pairs" else [])):
        expected, found = (CatBoost({**params, "loss_function": loss}).fit(pool) for pool in pools)
        assert found.evals_result_ == expected.evals_result_
        assert raw(found, make_pool(600)).tobytes() == raw(expected, make_pool(600)).tobytes()
    assert "weights" not in "".join(capfd.readouterr())


def test_weights_by_query_that_the_pool_does_not_show_are_not_replaced():
    _, _, qid = arrays(600)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 600)[qid]
    fresh, used = (make_pool(600, group_weight=weight) for _ in range(2))
    with pytest.raises(CatBoostError, match="a pool does not show its group_weight"):
        fit(catboost_objective("lambdamart", used), used)
    assert raw(fit("QueryRMSE", used), used).tobytes() == raw(fit("QueryRMSE", fresh), fresh).tobytes()


def test_a_training_without_weights_is_refused():
    passes = Passes(np.zeros(9, np.float32), None, np.zeros(9), lambda *_: (np.ones(9), np.ones(9)), newton_splits=True)
    with pytest.raises(LTRError, match="keeps no weights for this pool"):
        passes.answer(np.zeros(9), np.zeros(9, np.float32), None)


@pytest.mark.parametrize(("objective", "weighted"), sampled([*itertools.product(NOISELESS, (True, False))], 3))
def test_the_hessians_are_those_of_each_tree_and_gone_after_it(objective, weighted, tmp_path):
    """Three trees at once, and one by one from models in memory, which keep CatBoost's vectors, and from a file."""
    X, y, qid, _ = coarse(600)
    y = y / 4 * min(4.0, objective.label_limit or 4.0)
    weight = {"weight": np.random.default_rng(3).uniform(0.5, 2.0, 600)} if weighted else {}
    pool = Pool(X, y, group_id=qid, **weight)
    params = {"random_strength": 0, "bootstrap_type": "No", "eval_metric": "RMSE", "depth": 3, **NEWTON}

    def trees(count, **more):
        return fit(catboost_objective(objective, pool), pool, params={**params, "iterations": count}, **more)

    whole = raw(trees(3), X)
    second = trees(1, init_model=trees(1))
    np.testing.assert_allclose(raw(trees(1, init_model=second), X), whole, rtol=1e-6, atol=1e-6)
    if objective == NOISELESS[0]:
        second.save_model(tmp_path / "second.cbm")
        from_file = trees(1, init_model=str(tmp_path / "second.cbm"))
        np.testing.assert_allclose(raw(from_file, X), whole, rtol=1e-6, atol=1e-6)


def test_a_loss_of_catboost_s_own_continues_with_the_pool_s_weights(tmp_path):
    pool = make_pool(600)
    still = {"random_strength": 0, "bootstrap_type": "No"}
    model = fit(catboost_objective("lambdamart", pool), pool, params=still)
    model.save_model(tmp_path / "model.cbm")
    continued = [
        fit("QueryRMSE", pool, init_model=start, params=still) for start in (model, str(tmp_path / "model.cbm"))
    ]
    np.testing.assert_allclose(*(raw(each, pool) for each in continued), rtol=0, atol=1e-6)
