"""CatBoostRanker: statistics of categories, snapshots, pools and CatBoost's own objects."""

import itertools

import catboost
import numpy as np
import pandas as pd
import pytest
from catboost_fits import arrays
from rankers import EVAL, LIBRARIES, TEST, TRAIN, VALI, fit, ranker

from ltr_objectives import LTRError, LTRWarning, Queries, adapters, evaluate
from ltr_objectives.adapters import CatBoostRanker
from ltr_objectives.adapters._catboost import shuffled
from ltr_objectives.adapters._tables import Part
from ltr_objectives.libraries import LIBRARIES as FACTS

WEIGHT, START = np.random.default_rng(0).uniform(1, 2, (2, len(TRAIN.y)))


def pool(data=TRAIN, **given):
    return catboost.Pool(data.X, data.y, group_id=data.qid, **given)


@pytest.mark.parametrize("ours", [{"objective": "queryrmse"}, {"eval_metric": "map"}], ids=str)
def test_catboost_resumes_only_snapshots_without_ours(ours, tmp_path):
    """A snapshot does not name our objective or metric, so it would be continued with any other."""
    files = {"save_snapshot": True, "snapshot_file": "s", "snapshot_interval": 0}
    params = {"allow_writing_files": True, "train_dir": str(tmp_path), "objective": "QueryRMSE", "eval_metric": "NDCG"}
    whole = fit("catboost", "QueryRMSE", EVAL)
    for rounds in (5, 8):
        resumed = fit("catboost", given={**EVAL, **files}, n_estimators=rounds, **params)
    assert np.array_equal(resumed.predict(TEST.X), whole.predict(TEST.X))
    with pytest.raises(LTRError, match=r"save_snapshot.*init_model"):
        fit("catboost", **{**params, **files, **ours})


def with_statistics(seed, queries=300):
    """Draw labels that one feature decides with noise, and a category of which each query has three of 3,000."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), 12)
    shop = rng.integers(0, 3000, (queries, 3))[qid, rng.integers(0, 3, len(qid))]
    x = rng.normal(size=len(qid))
    X = pd.DataFrame({"x": x, "shop": pd.Categorical(shop.astype(str))})
    return X, np.digitize(x + 2 * rng.normal(size=len(qid)), [1, 2, 3]), qid


NATIVES = sorted(FACTS["catboost"].natives.keys() - {"QueryCrossEntropy"})  # of the GPU alone


@pytest.mark.parametrize(
    "native", [pytest.param(n, marks=() if n in ("QueryRMSE", "YetiRank") else pytest.mark.release) for n in NATIVES]
)
def test_a_metric_of_ours_does_not_change_a_training(native):
    """CatBoost shuffles rows with categories, which a metric needs not know of: it is evaluated on other data."""
    X, y, qid = with_statistics(0, 60)
    Z, z, other = with_statistics(1, 60)
    y, z = (np.minimum(v, 1) for v in (y, z))  # some objectives take no other labels
    if native == "StochasticRank":
        native += ":metric=NDCG"
    models = {}
    for metric in ("ndcg@10", "NDCG", ["map", "NDCG"]):
        made = ranker("catboost", native, eval_metric=metric, n_estimators=5, one_hot_max_size=1)
        models[str(metric)] = made.fit(X, y, qid=qid, eval_set=[(Z, z)], eval_qid=[other])
    first, *others = (model.predict(Z) for model in models.values())
    assert all(np.array_equal(first, scores) for scores in others)
    record = models["ndcg@10"].evals_result_["validation_0"]["ndcg@10"]
    assert record[-1] == pytest.approx(evaluate("ndcg@10", first, z, qid=other), abs=1e-6)
    assert np.ptp(record) > 0


@pytest.mark.parametrize("way", [-1, 1])
def test_target_statistics_do_not_read_labels_from_the_order_of_rows(way):
    """Sorted rows lose at most 0.025 NDCG@10; without the shuffle they lost 0.045 (falling) and 0.051 (rising)."""
    X, y, qid = with_statistics(0)
    Z, z, other = with_statistics(1)
    order = np.lexsort((way * y, qid))
    made = ranker("catboost", None, n_estimators=60, learning_rate=0.2, eval_metric="ndcg@10")
    drawn = made.fit(X, y, qid=qid).score(Z, z, qid=other)
    in_order = made.fit(X.iloc[order], y[order], qid=qid[order]).score(Z, z, qid=other)
    assert in_order > drawn - 0.025


def test_shuffled_rows_keep_their_query_and_what_belongs_to_them():
    group, row = np.array([3, 1, 6, 2]), np.arange(1.0, 13.0)
    queries = Queries({None: row, "b": 2 * row}, group, weight=row, propensity=row)
    part = shuffled(Part(pd.DataFrame({"x": row}), queries, row, margin=row, position=row, offset=row))
    now, given = part.X["x"].to_numpy(), part.queries
    assert not np.array_equal(now, row)
    assert np.array_equal(given.ptr, queries.ptr)
    for first, last in itertools.pairwise(queries.ptr):
        assert set(now[first:last]) == set(row[first:last])
    of_clicks = given.propensity, part.position, part.offset
    for array in (given.labels, given.for_goal("b").labels / 2, given.weight_by_row, *of_clicks, part.margin):
        np.testing.assert_array_equal(array, now)


def test_the_bare_objective_warns_of_sorted_labels_with_categories():
    X, y, qid = with_statistics(0)
    order = np.lexsort((y, qid))
    sorted_rows = catboost.Pool(X.iloc[order], y[order], group_id=qid[order], cat_features=["shop"])
    with pytest.warns(LTRWarning, match="random order"):
        adapters.catboost_objective("queryrmse", sorted_rows)
    adapters.catboost_objective("queryrmse", catboost.Pool(X, y, group_id=qid, cat_features=["shop"]))
    adapters.catboost_objective("queryrmse", catboost.Pool(X[["x"]].iloc[order], y[order], group_id=qid[order]))


@pytest.mark.parametrize("objective", ["yetiloss:map", "rmse", "YetiRank"])
def test_a_pool_is_as_good_as_its_arrays(objective):
    untrained = ranker("catboost", objective, eval_metric="map", early_stopping_rounds=3)
    expected = untrained.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **EVAL).predict(TEST.X)
    train, vali = pool(), pool(VALI)
    for eval_set in (vali, [vali, vali], (vali.get_features(), VALI.y)):
        of_pairs = {"eval_qid": [VALI.qid]} if isinstance(eval_set, tuple) else {}
        fitted = untrained.fit(train, eval_set=eval_set, **of_pairs)
        np.testing.assert_array_equal(fitted.predict(TEST.X), expected)
    np.testing.assert_array_equal(fitted.predict(pool(TEST)), expected)
    assert fitted.score(pool(TEST)) == evaluate("map", expected, TEST.y, TEST.group)
    assert fitted.n_features_in_ == TRAIN.X.shape[1]
    assert len(train.get_baseline()[0]) == 0  # squared error starts from the mean in a copy


@pytest.mark.parametrize("objective", ["yetiloss:map", "YetiRank"])
@pytest.mark.parametrize(
    ("given", "of_the_pool"),
    [({"sample_weight": WEIGHT}, {"weight": WEIGHT}), ({"baseline": START}, {"baseline": START})],
    ids=["weights", "baseline"],
)
def test_a_pool_has_weights_and_a_baseline(objective, given, of_the_pool):
    fitted = ranker("catboost", objective).fit(pool(**of_the_pool))
    np.testing.assert_allclose(fitted.predict(TEST.X), fit("catboost", objective, given).predict(TEST.X), atol=1e-6)
    np.testing.assert_allclose(fitted.predict(pool(baseline=START)), fitted.predict(TRAIN.X) + START, atol=1e-6)


def test_a_training_from_the_scores_of_a_model_goes_on_from_it():
    untrained = ranker("catboost", "lambdamart:ndcg", n_estimators=3, eval_metric="map")
    first = untrained.fit(pool(), eval_set=pool(VALI)).booster_
    pools = [pool(data, baseline=first.predict(data.X)) for data in (TRAIN, VALI)]
    whole = untrained.fit(pool(), eval_set=pool(VALI), init_model=first).predict(TEST.X)
    second = untrained.fit(pools[0], eval_set=pools[1])
    np.testing.assert_allclose(first.predict(TEST.X) + second.predict(TEST.X), whole, atol=1e-5)
    found = second.evals_result_["validation_0"]["map"][-1]
    assert found == pytest.approx(evaluate("map", second.predict(pools[1]), VALI.y, VALI.group), abs=1e-6)
    chosen = ranker("catboost", "auto", n_estimators=2, eval_metric="map").fit(pools[0], eval_set=pools[1])
    value = evaluate("map", chosen.predict(pools[1]), VALI.y, VALI.group)
    assert chosen.report_[0].value == pytest.approx(value)


def test_names_categories_and_pairs_come_with_a_pool():
    table = pd.DataFrame({"x": TRAIN.X[:, 0], "c": pd.Categorical((TRAIN.X[:, 1] > 0).astype(str))})
    fitted = ranker("catboost").fit(catboost.Pool(table, TRAIN.y, group_id=TRAIN.qid, cat_features=["c"]))
    assert list(fitted.feature_names_in_) == ["x", "c"]
    assert fitted.get_cat_feature_indices() == [1]
    assert fitted.predict(table).shape == TRAIN.y.shape
    pairs = pool(pairs=[[0, 1], [2, 1]])
    assert ranker("catboost", "PairLogit").fit(pairs).best_iteration_ == 8
    with pytest.warns(LTRWarning, match=r"yetiloss .*the 2 pairs"):
        ranker("catboost").fit(pairs)


class Squared:
    """CatBoost's form of an objective."""

    no_jit = True

    def calc_ders_range(self, approxes, targets, weights):
        return np.column_stack([np.subtract(targets, approxes), -np.ones(len(targets))])


class Absolute:
    """CatBoost's form of a metric."""

    no_jit = True

    def evaluate(self, approxes, target, weight):
        return -np.abs(np.subtract(approxes[0], target)).sum(), len(target)

    def is_max_optimal(self):
        return True

    def get_final_error(self, error, weight):
        return error / weight


def test_catboost_s_own_objects():
    params = LIBRARIES["catboost"][1]
    made = CatBoostRanker(loss_function=Squared(), eval_metric=[Absolute(), "NDCG"], **params)
    fitted = made.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **EVAL)
    own = catboost.CatBoost({"loss_function": Squared(), "eval_metric": Absolute(), "verbose": False, **params})
    np.testing.assert_array_equal(fitted.predict(TEST.X), own.fit(TRAIN.X, TRAIN.y).predict(TEST.X))
    found = fitted.evals_result_["validation_0"]
    assert found["Absolute"][-1] == pytest.approx(-np.abs(fitted.predict(VALI.X) - VALI.y).mean())
    assert sorted(found) == ["Absolute", "NDCG:type=Base"]
    names = {"loss_function": catboost.metrics.QueryRMSE(), "eval_metric": ["map", catboost.metrics.NDCG(top=5)]}
    named = CatBoostRanker(**names, **params).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **EVAL)
    assert named.objective_ == "QueryRMSE"
    assert sorted(named.best_score_["validation_0"]) == ["NDCG:top=5;type=Base", "QueryRMSE", "map"]
    with pytest.raises(LTRError, match="CatBoost calls one metric object"):
        made.set_params(eval_metric=["map", Absolute()]).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)


LIKE_CATBOOST = {"iterations": 20, "bootstrap_type": "No", "l2_leaf_reg": 3, "thread_count": 2}


@pytest.mark.parametrize("values", [10, 11])
def test_the_ranker_encodes_categories_as_catboost_s_ranking_losses_do(values):
    X, y, qid = arrays(900)
    frame = pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(np.random.default_rng(4).integers(0, values, 900))})
    y += frame["kind"].cat.codes % 3
    params = {**LIKE_CATBOOST, "random_strength": 0, "has_time": True}
    part = shuffled(Part(frame, Queries(y, qid=qid), y))  # as the ranker does it for ours
    native = CatBoostRanker(objective="QueryRMSE", **params).fit(part.X, part.labels, qid=part.qid)
    ours = CatBoostRanker(objective="queryrmse", newton_splits=False, **params).fit(frame, y, qid=qid)
    np.testing.assert_allclose(ours.predict(frame), native.predict(frame), rtol=0, atol=1e-10)


@pytest.mark.parametrize("factor", [1, 1000])
def test_the_ranker_weighs_as_catboost_s_own_loss_does(factor):
    X, y, qid = arrays(900)
    params = {**LIKE_CATBOOST, "learning_rate": 0.1, "random_strength": 1}
    rankers = (CatBoostRanker(objective=name, **params) for name in ("QueryRMSE", "queryrmse"))
    native, ours = (r.fit(X, y, qid=qid, sample_weight=np.full(len(y), factor)).predict(X) for r in rankers)
    np.testing.assert_allclose(ours, native, rtol=0, atol=1e-6)


def test_the_ranker_adds_no_noise_to_the_scores_of_splits():
    none, one = ([fit("catboost", "ranknet", random_seed=seed, **more).predict(TEST.X) for seed in (0, 1)]
                 for more in ({}, {"random_strength": 1}))  # fmt: skip
    np.testing.assert_array_equal(*none)
    assert not np.array_equal(*one)


@pytest.mark.filterwarnings("ignore:40 of 40 queries have zero gradient")  # as it has to be
def test_catboost_trains_on_when_there_is_nothing_left_to_learn():
    fitted = ranker("catboost").fit(TRAIN.X, TRAIN.qid % 2, qid=TRAIN.qid)  # equal labels in a query
    assert np.array_equal(fitted.predict(TRAIN.X), np.zeros(len(TRAIN.y)))


def test_a_training_of_catboost_that_ends_before_its_first_tree():
    labels = 8e37 * TRAIN.y.astype(float)
    with pytest.raises(LTRError, match="before its first tree"):
        ranker("catboost", "QuerySoftMax", bootstrap_type="No").fit(TRAIN.X, labels, qid=TRAIN.qid)
