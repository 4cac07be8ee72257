"""Our objectives in CatBoost: QueryRMSE equals CatBoost's own, and splits are the best by our Hessians."""

import contextlib
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from catalog import KINDS, OBJECTIVES
from catboost import CatBoost, CatBoostError, Pool
from catboost_fits import GRADIENT, NEWTON, QUIET, arrays, fit, make_pool, raw
from trainings import sampled

from ltr_objectives import LTRWarning, Queries
from ltr_objectives.adapters import catboost_metric, catboost_objective
from ltr_objectives.adapters._callables import ObjectiveCallable


def assert_native(pool, params=None, group_weight=None, newton_splits=False, **arguments):
    """Assert that our QueryRMSE and CatBoost's give the same model; scores of splits are sums in another order."""
    loss = catboost_objective("queryrmse", pool, group_weight=group_weight, newton_splits=newton_splits)
    native, ours = (fit(each, pool, params=params, **arguments) for each in ("QueryRMSE", loss))
    assert ours.tree_count_ == native.tree_count_ > 0
    assert np.ptp(raw(native, pool)) > 0.1
    np.testing.assert_allclose(raw(ours, pool), raw(native, pool), rtol=0, atol=1e-6 if newton_splits else 1e-10)
    return ours


SIZES = [(2, 1), (499, 2), (500, 1), (501, 4), (999, 1), (1000, 2), (1001, 4), (3000, 1), (3001, 4)]
SIZES += [(20000, 1), (20000, 2), (20000, 4)]
LEAVES = [{**NEWTON, "leaf_estimation_iterations": 4}, GRADIENT]


@pytest.mark.parametrize(("rows", "threads", "leaves"), sampled([(*s, leaves) for s in SIZES for leaves in LEAVES]))
def test_rows_and_threads(rows, threads, leaves):
    pool = make_pool(rows) if rows > 2 else Pool([[0.0], [1.0]], [0, 1], group_id=[0, 0])
    few = {"bootstrap_type": "No"} if rows == 2 else {}
    assert_native(pool, {**leaves, "thread_count": threads, **few})


OPTIONS = {
    "newton 5 leaf iterations": {**NEWTON, "leaf_estimation_iterations": 5},
    "gradient 3 leaf iterations": {**GRADIENT, "leaf_estimation_iterations": 3},
    "bernoulli": {"bootstrap_type": "Bernoulli", "subsample": 0.5},
    "bayesian": {"bootstrap_type": "Bayesian", "bagging_temperature": 2.0},
    "mvs": {"bootstrap_type": "MVS", "subsample": 0.6},
    "no bootstrap": {"bootstrap_type": "No"},
    "sampling per level": {"sampling_frequency": "PerTreeLevel"},
    "depthwise": {"grow_policy": "Depthwise", "min_data_in_leaf": 3, **NEWTON},
    "lossguide": {"grow_policy": "Lossguide", "max_leaves": 12},
    "sampling queries": {"sampling_unit": "Group", "bootstrap_type": "Bernoulli"},
    "rsm": {"rsm": 0.5},
    "langevin": {"langevin": True, "diffusion_temperature": 100.0},
    "model shrinkage": {"model_shrink_rate": 0.05},
    "posterior sampling": {"posterior_sampling": True},
    "monotone": {"monotone_constraints": [1, 0, 0, -1, 0, 0]},
    "score function": {"score_function": "L2"},
    "has time": {"has_time": True},
    "penalties": {"first_feature_use_penalties": [0, 1, 0, 0, 2, 0]},
    "random strength": {"random_strength": 5.0, "random_seed": 7},
    "builtin metrics": {"eval_metric": "QueryRMSE", "custom_metric": ["DCG:top=3", "QueryAUC"], "metric_period": 7},
}
MANY_BLOCKS = "newton 5 leaf iterations", "mvs", "model shrinkage", "depthwise"


@pytest.mark.parametrize(
    ("option", "rows"), [*sampled([(o, 1300) for o in OPTIONS], 2), *sampled([(o, 10500) for o in MANY_BLOCKS], 4)]
)
def test_training_options(option, rows):
    assert_native(make_pool(rows), OPTIONS[option])


RNG = np.random.default_rng(5)
BY_QUERY = RNG.uniform(0.1, 3.0, 1500)[arrays(1500)[2]]
POOLS = {
    "plain": {},
    "weight": {"weight": RNG.uniform(0.1, 3.0, 1500)},
    "group_weight": {"group_weight": BY_QUERY},
    "large weights": {"group_weight": 1000 * BY_QUERY},
    "even weights": {"weight": np.full(1500, 1000.0)},
    "even weights by query": {"group_weight": np.full(1500, 0.01)},
    "weights of one": {"weight": np.ones(1500)},
    "small weights": {"weight": RNG.choice([0.0, 1e-3], 1500), "baseline": RNG.normal(size=1500)},
    "baseline": {"baseline": RNG.normal(size=1500)},
}
SPLITS = [(newton_splits, l2, strength) for newton_splits in (False, True) for l2 in (3, 0.01) for strength in (1, 0)]


@pytest.mark.parametrize(("given", "splits"), sampled(itertools.product(POOLS, SPLITS)))
def test_weights_and_baselines(given, splits):
    newton_splits, l2, strength = splits
    params = {**NEWTON, "bootstrap_type": "No", "l2_leaf_reg": l2, "random_strength": strength}
    assert_native(make_pool(**POOLS[given]), params, POOLS[given].get("group_weight"), newton_splits)


COLUMNS = {
    "categories": ({"cat_features": ["kind"]}, {"has_time": True, "leaf_estimation_iterations": 3}),
    "one hot": ({"cat_features": ["kind"]}, {"has_time": True, "one_hot_max_size": 50}),
    "text and vectors": ({"text_features": ["text"], "embedding_features": ["vector"]}, {}),
}


@pytest.mark.parametrize("columns", COLUMNS)
def test_columns_that_are_no_numbers(columns):
    X, y, qid = arrays(500)
    of_pool, params = COLUMNS[columns]
    frame = pd.DataFrame(X, columns=list("abcdef"))
    if "cat_features" in of_pool:
        frame["kind"] = [f"{a > 0}{i % 7}" for i, a in enumerate(frame["a"])]
    else:
        frame["text"] = [" ".join(RNG.choice(["red", "green", "blue", "old", "new"], 4)) for _ in y]
        frame["vector"] = list(RNG.normal(size=(len(y), 4)) + y[:, None])
    assert_native(Pool(frame, y, group_id=qid, **of_pool), params)


def test_eval_sets_and_our_metric_beside():
    pool, *valid = (make_pool(rows, seed) for rows, seed in ((1500, 0), (600, 1), (400, 2)))
    stop = {"eval_set": valid, "early_stopping_rounds": 10, "use_best_model": True}
    ours = assert_native(pool, {"iterations": 400, "learning_rate": 0.3, "eval_metric": "QueryRMSE"}, **stop)
    assert ours.tree_count_ < 390
    assert_native(pool, {"eval_metric": catboost_metric("ndcg@10", pool, *valid)}, eval_set=valid, use_best_model=True)


def test_quantized_pools_and_parts_of_a_pool():
    pool = make_pool()
    assert_native(pool.slice(np.flatnonzero(arrays(1500)[2] < 30)))
    pool.quantize(border_count=32)
    assert_native(pool)


@pytest.mark.parametrize("first", ["RMSE", "QueryRMSE"])
def test_training_continues_from_a_model_file(first, tmp_path):
    pool = make_pool()
    fit(first, pool, params={"eval_metric": "RMSE"}).save_model(tmp_path / "model.cbm")
    for model in (str(tmp_path / "model.cbm"), CatBoost().load_model(tmp_path / "model.cbm")):
        assert_native(pool, {"leaf_estimation_iterations": 2}, init_model=model)


def test_several_trainings_in_parallel_and_no_object_is_changed():
    pools = [make_pool(1200 + 700 * i, seed=i) for i in range(4)]
    losses = [catboost_objective("queryrmse", pool) for pool in pools]
    before = pickle.dumps(losses)
    alone = [raw(fit("QueryRMSE", pool), pool) for pool in pools]

    def train(i):
        return raw(fit(losses[i], pools[i]), pools[i])

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(train, [*range(4), *range(4)]))  # each object twice, at the same time
    for i in range(8):
        np.testing.assert_allclose(together[i], alone[i % 4], rtol=0, atol=1e-8)
    assert pickle.dumps(losses) == before


# splits by Hessians


kinds = pytest.mark.parametrize(
    "objective",
    [pytest.param(o, marks=() if o in KINDS.values() else pytest.mark.release) for o in OBJECTIVES.values()],
)
STILL = {"random_strength": 0, "bootstrap_type": "No"}


def gain(grad, weight, right, l2):
    """Return the score of a split; 0 without a split."""
    return sum(grad[side].sum() ** 2 / (weight[side].sum() + l2) for side in (right, ~right) if weight[side].any())


def coarse(rows=900):
    """Return features of six values, so that few splits are possible, labels, and query ids."""
    X, y, qid = arrays(rows)
    return np.clip(np.round(2 * X), -3, 2), y, qid


@kinds
@pytest.mark.parametrize(("newton", "l2"), [(True, 3), (False, 0)])
def test_the_best_split_is_by_hessians_and_its_leaves_by_numbers_of_rows(objective, newton, l2):
    X, y, qid = coarse()
    y, start = y / 4 * min(4.0, objective.label_limit or 4.0), np.float32(RNG.normal(size=len(y)))
    pool = Pool(X, y, group_id=qid, baseline=start)
    loss = catboost_objective(objective, pool, newton_splits=newton)
    params = {"iterations": 1, "depth": 1, "score_function": "L2", "eval_metric": "RMSE", "learning_rate": 1}
    model = fit(loss, pool, params={**params, **STILL, "l2_leaf_reg": l2})
    leaf = model.calc_leaf_indexes(pool)[:, 0]
    queries = Queries(np.float32(y), np.unique(qid, return_counts=True)[1])
    grad, hess = catboost_objective(objective, pool).gradients(queries, start.astype(float))
    weight = np.maximum(hess, 0.0) if newton else np.ones(len(y))
    best = max(gain(grad, weight, X[:, j] > v, l2) for j in range(X.shape[1]) for v in range(-3, 2))
    assert gain(grad, weight, leaf == 1, l2) == pytest.approx(best, rel=1e-4)
    rows = np.bincount(leaf, minlength=2)
    steps = -np.bincount(leaf, grad, minlength=2) / (rows + l2 + 1e-300)
    np.testing.assert_allclose(model.get_leaf_values(), steps, rtol=1e-5, atol=1e-6 * np.abs(steps).max())
    np.testing.assert_allclose(model.get_leaf_weights(), rows, atol=1e-5)
    assert (np.array(pool.get_weight()) == 1).all()


HESSIANS = 0.0, 1e-310, 1e-42, 1e-30, 1e30, 1e60, 1e300


@pytest.mark.parametrize(
    ("bootstrap", "size"), sampled(itertools.product(("No", "Bernoulli", "Bayesian"), HESSIANS), 4)
)
def test_hessians_of_any_size_give_splits(bootstrap, size, monkeypatch):
    """CatBoost's weights are float32, and it divides by their sums."""
    X, y, qid = coarse()
    found = np.mean(y) - y, np.full(len(y), size)
    monkeypatch.setattr(ObjectiveCallable, "gradients", lambda *_, **__: found)
    pool = Pool(X, y, group_id=qid)
    params = {"iterations": 3, "bootstrap_type": bootstrap, "eval_metric": "RMSE", "learning_rate": 1}
    model = fit(catboost_objective("rmse", pool), pool, params=params)
    assert np.ptp(model.calc_leaf_indexes(pool), axis=0).all()
    assert np.corrcoef(raw(model, pool), y)[0, 1] > 0.3


@pytest.mark.parametrize("kind", ["plain", "pairs", "quantized"])
def test_catboost_s_own_losses_and_metrics_on_the_pool_stay_as_they_were(kind, capfd):
    pools = [make_pool(600, **({"pairs": [(1, 0), (0, 2)]} if kind == "pairs" else {})) for _ in range(2)]
    for pool in pools if kind == "quantized" else []:
        pool.quantize()

    def train(loss, pool):
        params = {**QUIET, "iterations": 3, "custom_metric": ["MRR", "NDCG:top=3"], "verbose": 1}
        return CatBoost({**params, "loss_function": loss}).fit(pool)

    with pytest.warns(LTRWarning, match="the 2 pairs of the pool") if kind == "pairs" else contextlib.nullcontext():
        ours = train(catboost_objective("lambdamart", pools[1]), pools[1])
    assert all("use_weights" not in name for name in ours.evals_result_["learn"])
    for loss in ("YetiRank", "QueryRMSE", *(["PairLogit"] if kind == "pairs" else [])):
        expected, found = (train(loss, pool) for pool in pools)
        assert found.evals_result_ == expected.evals_result_
        assert raw(found, make_pool(600)).tobytes() == raw(expected, make_pool(600)).tobytes()
    assert "weights" not in "".join(capfd.readouterr())


def test_weights_by_query_that_the_pool_does_not_show_are_not_replaced():
    fresh, used = (make_pool(1500, group_weight=BY_QUERY) for _ in range(2))
    with pytest.raises(CatBoostError, match="a pool does not show its group_weight"):
        fit(catboost_objective("lambdamart", used), used)
    assert raw(fit("QueryRMSE", used), used).tobytes() == raw(fit("QueryRMSE", fresh), fresh).tobytes()


def test_a_loss_of_catboost_s_own_continues_with_the_pool_s_weights(tmp_path):
    pool = make_pool(600)
    model = fit(catboost_objective("lambdamart", pool), pool, params=STILL)
    model.save_model(tmp_path / "model.cbm")
    starts = model, str(tmp_path / "model.cbm")
    continued = [raw(fit("QueryRMSE", pool, init_model=start, params=STILL), pool) for start in starts]
    np.testing.assert_allclose(*continued, rtol=0, atol=1e-6)
