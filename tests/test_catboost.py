"""Our objectives in CatBoost: QueryRMSE equals CatBoost's own, and splits are the best by our Hessians."""

import contextlib
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from catalog import KINDS, OBJECTIVES
from catboost import CatBoost, CatBoostError, CatBoostRegressor, Pool
from catboost_fits import DEFAULTS, GRADIENT, NEWTON, TREES, arrays, assert_native, fit, make_pool, raw, sampled

from ltr_objectives import Queries, get_objective, registry
from ltr_objectives.adapters._callables import ObjectiveCallable
from ltr_objectives.adapters._catboost import catboost_metric, catboost_objective
from ltr_objectives.errors import LTRWarning

SIZES = [(2, 1), (499, 2), (500, 1), (501, 4), (999, 1), (1000, 2), (1001, 4), (3000, 1), (3001, 4)]
SIZES += [(20000, 1), (20000, 2), (20000, 4)]
LEAVES = [{**NEWTON, "leaf_estimation_iterations": 4}, GRADIENT]


@pytest.mark.parametrize(("rows", "threads", "leaves"), sampled([(*s, leaves) for s in SIZES for leaves in LEAVES]))
def test_rows_and_threads(rows, threads, leaves):
    params = {**leaves, "thread_count": threads}
    if rows == 2:
        pool = Pool([[0.0], [1.0]], [0, 1], group_id=[0, 0])
        params |= {"bootstrap_type": "No"}
    else:
        pool = make_pool(rows)
    assert_native(pool, params=params)


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
    assert_native(make_pool(rows), params=OPTIONS[option])


WEIGHTS = "weight", "group_weight", "baseline", "small weights", "weights of one"


@pytest.mark.parametrize(("leaves", "what"), sampled([(leaves, what) for leaves in LEAVES for what in WEIGHTS], 3))
def test_pools_with_weights_and_baselines(leaves, what):
    rng = np.random.default_rng(5)
    _, _, qid = arrays(1500)
    by_query = rng.uniform(0.1, 3.0, qid[-1] + 1)
    given = {
        "weight": {"weight": rng.uniform(0.1, 3.0, 1500)},
        "group_weight": {"group_weight": by_query[qid]},
        "baseline": {"baseline": rng.normal(size=1500)},
        "small weights": {"weight": rng.choice([0.0, 1e-3], 1500), "baseline": rng.normal(size=1500)},
        "weights of one": {"weight": np.ones(1500)},
    }[what]
    pool = make_pool(1500, **given)
    params = {**leaves, "bootstrap_type": "No", "l2_leaf_reg": 0.01}
    assert_native(pool, params=params, group_weight=by_query if what == "group_weight" else None)
    if what == "group_weight":
        assert_native(pool, params=params, group_weight=by_query[qid])


def test_eval_sets_early_stopping_and_the_best_model():
    pool, valid, second = make_pool(1500), make_pool(600, seed=1), make_pool(400, seed=2)
    params = {"iterations": 400, "learning_rate": 0.3, "eval_metric": "QueryRMSE"}
    native, ours = assert_native(
        pool, params=params, other=valid, eval_set=[second, valid], early_stopping_rounds=10, use_best_model=True
    )
    assert ours.tree_count_ < 390
    assert ours.get_best_iteration() == native.get_best_iteration()
    assert ours.evals_result_["validation_1"]["QueryRMSE"] == pytest.approx(
        native.evals_result_["validation_1"]["QueryRMSE"]
    )


def with_category(rows=1500, seed=0):
    X, y, qid = arrays(rows, seed)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = [f"{a > 0}{i % 7}" for i, a in enumerate(frame["a"])]
    return frame, y, qid


@pytest.mark.parametrize("params", [{}, {"one_hot_max_size": 50}, {"leaf_estimation_iterations": 3}], ids=str)
def test_categorical_features_in_the_order_of_the_pool(params):
    frame, y, qid = with_category()
    pool = Pool(frame, y, group_id=qid, cat_features=["kind"])
    assert_native(pool, params={"has_time": True, **params})


def test_estimator_classes_of_catboost():
    pool = make_pool(900)
    params = {**DEFAULTS, **GRADIENT, "loss_function": catboost_objective("queryrmse", pool, newton_splits=False)}
    ours = CatBoostRegressor(**params).fit(pool)
    np.testing.assert_allclose(ours.predict(pool), raw(fit("QueryRMSE", pool), pool), rtol=0, atol=1e-10)


def test_text_and_embedding_features():
    rng = np.random.default_rng(1)
    frame, y, qid = with_category(500)
    frame["text"] = [" ".join(rng.choice(["red", "green", "blue", "old", "new"], 4)) for _ in y]
    frame["vector"] = list(rng.normal(size=(len(y), 4)) + y[:, None])
    assert_native(
        Pool(frame.drop(columns="kind"), y, group_id=qid, text_features=["text"], embedding_features=["vector"])
    )


def test_quantized_pools_parts_of_a_pool_and_our_metric_beside_it():
    pool, valid = make_pool(1500), make_pool(600, seed=1)
    params = {"eval_metric": catboost_metric("ndcg@10", pool, valid)}
    assert_native(pool, params=params, eval_set=valid, use_best_model=True)
    _, _, qid = arrays(1500)
    assert_native(pool.slice(np.flatnonzero(qid < 30)))
    pool.quantize(border_count=32)
    assert_native(pool)


@pytest.mark.parametrize("first", ["RMSE", "QueryRMSE"])
def test_training_continues_from_a_model_file(first, tmp_path):
    pool = make_pool(1500)
    fit(first, pool, params={"eval_metric": "RMSE"}).save_model(tmp_path / "model.cbm")
    for model in (str(tmp_path / "model.cbm"), CatBoost().load_model(tmp_path / "model.cbm")):
        assert_native(pool, init_model=model, params={"leaf_estimation_iterations": 2})


def test_training_continues_from_a_model_just_trained():
    """CatBoost's first continuation uses more of such a model than its trees, so ours and native continue their own."""
    pool = make_pool(1500)
    native, ours = assert_native(pool)
    for _ in range(2):
        native = fit("QueryRMSE", pool, init_model=native)
        ours = fit(catboost_objective("queryrmse", pool, newton_splits=False), pool, init_model=ours)
        np.testing.assert_allclose(raw(ours, pool), raw(native, pool), rtol=0, atol=1e-10)
    assert ours.tree_count_ == 3 * TREES


def test_several_trainings_in_parallel():
    pools = [make_pool(1200 + 700 * i, seed=i) for i in range(4)]
    losses = [catboost_objective("queryrmse", pool) for pool in pools]
    alone = [raw(fit("QueryRMSE", pool), pool) for pool in pools]

    def train(i):
        return raw(fit(losses[i], pools[i]), pools[i])

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(train, [*range(4), *range(4)]))  # each object twice, at the same time
    for i in range(8):
        np.testing.assert_allclose(together[i], alone[i % 4], rtol=0, atol=1e-8)


def test_same_bytes_for_any_number_of_threads_again_and_after_pickle():
    pool = make_pool(5000)
    noisy = KINDS["yetiloss"]
    loss = catboost_objective(noisy, pool)
    params = {"iterations": 8, "thread_count": 1}
    expected = raw(fit(loss, pool, params=params), pool).tobytes()
    for threads in (1, 2, 4):
        again = fit(loss, pool, params={**params, "thread_count": threads})
        assert raw(again, pool).tobytes() == expected
        limited = catboost_objective(noisy, pool, n_threads=threads)
        assert raw(fit(limited, pool, params=params), pool).tobytes() == expected
    loaded = pickle.loads(pickle.dumps(loss))
    assert raw(fit(loaded, pool, params=params), pool).tobytes() == expected


def test_an_object_that_fits_is_not_changed():
    pool = make_pool(700)
    loss = catboost_objective("queryrmse", pool)
    before = pickle.dumps(loss)
    model = fit(loss, pool)
    assert pickle.dumps(loss) == before
    first = raw(model, pool)
    np.testing.assert_array_equal(raw(model.fit(pool), pool), first)
    assert isinstance(model.get_params()["loss_function"], type(loss))


def test_objectives_compute_once_a_pass(monkeypatch):
    scores = []

    def counted(made, queries, given, *how, compute=ObjectiveCallable.gradients, **named):
        scores.append(given.copy())
        return compute(made, queries, given, *how, **named)

    monkeypatch.setattr(ObjectiveCallable, "gradients", counted)
    pool = make_pool(3000)
    fit(catboost_objective("queryrmse", pool), pool, params={"iterations": 10, "leaf_estimation_iterations": 3})
    assert len(scores) == 10 * 3, "the first pass over the leaves uses the gradients of the structure"
    assert len({s.tobytes() for s in scores}) == len(scores)


STUMP = {
    "iterations": 1, "depth": 1, "score_function": "L2", "random_strength": 0, "l2_leaf_reg": 0,
    "bootstrap_type": "No", "eval_metric": "RMSE",
}  # fmt: skip


UNEVEN = [
    (None, False, 1),
    *itertools.product(("weight", "group_weight"), (False, True), (0.01, 1, 1000)),  # given as, uneven, size
]
HESSIANS = 0.0, 1e-310, 1e-42, 1e-30, 1e30, 1e60, 1e300
kinds = pytest.mark.parametrize(
    "objective",
    [pytest.param(o, marks=() if o in KINDS.values() else pytest.mark.release) for o in OBJECTIVES.values()],
)
NOISELESS = [o for o in (get_objective(name).without_noise() for name in registry.objectives()) if o is not None]


def gain(grad, weight, right, l2):
    """The score of a split; 0 without a split."""
    return sum(grad[side].sum() ** 2 / (weight[side].sum() + l2) for side in (right, ~right) if weight[side].any())


def coarse(rows=900):
    """Features of six values, so that few splits are possible, and scores to start from."""
    X, y, qid = arrays(rows)
    X = np.clip(np.round(2 * X), -3, 2)
    return X, y, qid, np.float32(np.random.default_rng(1).normal(size=rows))


@kinds
@pytest.mark.parametrize(("newton", "l2"), [(True, 3), (False, 0)])
def test_the_best_split_by_gradients_and_hessians_or_numbers_of_rows(objective, newton, l2):
    X, y, qid, start = coarse()
    y = y / 4 * min(4.0, objective.label_limit or 4.0)
    pool = Pool(X, y, group_id=qid, baseline=start)
    loss = catboost_objective(objective, pool, newton_splits=newton)
    stump = fit(loss, pool, params={**STUMP, "l2_leaf_reg": l2})
    chosen = stump.calc_leaf_indexes(pool)[:, 0] == 1
    queries = Queries(np.float32(y), np.unique(qid, return_counts=True)[1])
    grad, hess = catboost_objective(objective, pool).gradients(queries, start.astype(float))
    weight = np.maximum(hess, 0.0) if newton else np.ones(len(y))
    best = max(gain(grad, weight, X[:, j] > v, l2) for j in range(X.shape[1]) for v in range(-3, 2))
    assert gain(grad, weight, chosen, l2) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(("weights", "l2", "strength"), sampled([*itertools.product(UNEVEN, (3, 0), (1, 0))], 7))
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
    ("bootstrap", "size"), sampled([*itertools.product(("No", "Bernoulli", "Bayesian"), HESSIANS)], 4)
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


@kinds
def test_only_the_splits_see_the_hessians(objective):
    X, y, qid, start = coarse()
    y = y / 4 * min(4.0, objective.label_limit or 4.0)
    pool = Pool(X, y, group_id=qid, baseline=start)
    params = {"iterations": 1, "leaf_estimation_method": "Gradient", "l2_leaf_reg": 0, "learning_rate": 1}
    model = fit(catboost_objective(objective, pool), pool, params={**params, "eval_metric": "RMSE"})
    queries = Queries(np.float32(y), np.unique(qid, return_counts=True)[1])
    grad, _ = catboost_objective(objective, pool).gradients(queries, start.astype(float))
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
