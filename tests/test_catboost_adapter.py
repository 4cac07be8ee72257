"""The CatBoost objective: equal to CatBoost's own QueryRMSE to the last digits, for everything that is supported."""

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostRegressor, Pool
from catboost_fits import DEFAULTS, GRADIENT, NEWTON, TREES, arrays, assert_native, fit, make_pool, raw, sampled

from ltr_objectives import Queries
from ltr_objectives.adapters import CatBoostRanker
from ltr_objectives.adapters._catboost import catboost_metric, catboost_objective
from ltr_objectives.adapters._catboost_ranker import shuffled
from ltr_objectives.adapters._data import Part

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
    "builtin metrics": {
        "eval_metric": "QueryRMSE",
        "custom_metric": ["DCG:top=3", "FilteredDCG", "QueryAUC"],
        "metric_period": 7,
    },
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


@pytest.mark.parametrize("values", [10, 11])
def test_the_ranker_encodes_categories_as_catboost_s_ranking_losses_do(values):
    X, y, qid = arrays(900)
    frame = pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(np.random.default_rng(4).integers(0, values, 900))})
    y += frame["kind"].cat.codes % 3
    params = {"iterations": 20, "bootstrap_type": "No", "random_strength": 0, "has_time": True, "thread_count": 2}
    params["l2_leaf_reg"] = 3
    native = CatBoostRanker(objective="QueryRMSE", **params)
    ours = CatBoostRanker(objective="queryrmse", newton_splits=False, **params)
    part = shuffled(Part(frame, Queries(y, qid=qid), y))  # as the ranker does it for ours
    native.fit(part.X, part.labels, qid=part.qid)
    scores = ours.fit(frame, y, qid=qid).predict(frame)
    np.testing.assert_allclose(scores, native.predict(frame), rtol=0, atol=1e-10)


def test_text_and_embedding_features():
    rng = np.random.default_rng(1)
    frame, y, qid = with_category()
    frame["text"] = [" ".join(rng.choice(["red", "green", "blue", "old", "new"], 4)) for _ in y]
    frame["vector"] = list(rng.normal(size=(len(y), 4)) + y[:, None])
    pool = Pool(frame.drop(columns="kind"), y, group_id=qid, text_features=["text"], embedding_features=["vector"])
    assert_native(pool)


def test_quantized_pools_and_parts_of_a_pool():
    pool = make_pool(1500)
    _, _, qid = arrays(1500)
    assert_native(pool.slice(np.flatnonzero(qid < 30)))
    pool.quantize(border_count=32)
    assert_native(pool)


def test_estimator_classes_of_catboost():
    pool = make_pool(900)
    params = {**DEFAULTS, **GRADIENT, "loss_function": catboost_objective("queryrmse", pool, newton_splits=False)}
    ours = CatBoostRegressor(**params).fit(pool)
    np.testing.assert_allclose(ours.predict(pool), raw(fit("QueryRMSE", pool), pool), rtol=0, atol=1e-10)


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


def test_objective_beside_our_metric():
    pool, valid = make_pool(1500), make_pool(600, seed=1)
    params = {"eval_metric": catboost_metric("ndcg@10", pool, valid)}
    assert_native(pool, params=params, eval_set=valid, use_best_model=True)
