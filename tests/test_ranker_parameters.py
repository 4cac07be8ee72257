"""Parameters that the estimators take or refuse, beside the rows of refusals.toml."""

import itertools
import json
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catalog import PATHS
from rankers import EVAL, NATIVE, TRAIN, VALI, everywhere, fit, ranker_class

from ltr_objectives import LTRError, Mixture
from ltr_objectives.libraries import LIBRARIES as TABLES

QUERIES = {"X": TRAIN.X, "y": TRAIN.y, "qid": TRAIN.qid}


# parameters of the library's own objectives


def xgboost_s_own():
    config = json.loads(xgb.Booster({"objective": "rank:ndcg", "num_feature": 1, "nthread": 1}).save_config())
    return set(config["learner"]["objective"]["lambdarank_param"])


def test_the_table_of_parameters_that_ours_do_not_read_is_complete():
    assert xgboost_s_own() <= set(TABLES["xgboost"].unread)
    known = {name for names in TABLES["lightgbm"].aliases() for name in names}
    assert {name for name in known if name.startswith("lambdarank_")} <= set(TABLES["lightgbm"].unread)
    assert known >= set(TABLES["lightgbm"].unread)


@pytest.mark.parametrize(
    ("library", "native", "name", "value"),
    [
        ("xgboost", "rank:ndcg", "lambdarank_pair_method", "mean"),
        ("lightgbm", "lambdarank", "lambdarank_truncation_level", 3),
        ("catboost", "YetiRankPairwise", "bayesian_matrix_reg", 0.5),
    ],
)
def test_parameters_of_the_library_s_own_objectives(library, native, name, value):
    assert fit(library, native, n_estimators=1, **{name: value}).booster_
    for unread in TABLES[library].unread:
        with pytest.raises(LTRError, match=f"^{unread}="):
            fit(library, **{unread: value})


# names of parameters


def test_every_parameter_that_the_library_knows_is_taken():
    everything = lgb.LGBMRanker(objective="lambdarank", num_leaves=7, n_estimators=1, verbose=-1).get_params()
    assert ranker_class("lightgbm")(**everything).fit(**QUERIES).best_iteration_ == 1
    everything = xgb.XGBRanker(objective="rank:ndcg", n_estimators=1).get_params()
    known = {"eta": 0.1, "alpha": 0, "seed": 3, "rate_drop": 0.1, "booster": "dart", "use_rmm": False, "nthread": 1}
    for given in (everything, known, {"tree_method": "exact", "opt_dense_col": 1.0}):
        assert ranker_class("xgboost")(**{"n_estimators": 1, **given}).fit(**QUERIES).booster_


def test_xgboost_s_names_of_one_parameter_are_those_that_it_sets_together():
    def values(**params):
        config = json.loads(xgb.Booster({"num_feature": 1, "nthread": 1, **params}).save_config())["learner"]
        return {**config["generic_param"], **config["gradient_booster"]["tree_train_param"]}

    before, pairs = values(), set()
    for name, new in itertools.product(before, ("0.5", "3")):
        try:
            after = values(**{name: new})
        except xgb.core.XGBoostError:
            continue
        pairs.add(frozenset(n for n in after if n != "rng_state" and after[n] != before.get(n)))  # which no one sets
    assert {pair for pair in pairs if len(pair) > 1} == set(map(frozenset, TABLES["xgboost"].aliases()))


@everywhere
def test_two_names_of_one_parameter_are_refused(library):
    for first, second in itertools.chain(*map(itertools.pairwise, TABLES[library].aliases())):
        with pytest.raises(LTRError, match=rf"\b{second}="):
            ranker_class(library)(**{first: 0, second: 1}).fit(**QUERIES)


@pytest.mark.parametrize("name", ["lambda_l2", "lambda"])
def test_our_default_l2_does_not_compete_with_the_user_s(name):
    assert ranker_class("lightgbm")(reg_lambda=0.0)._given() == {"reg_lambda": 0.0}
    expected, found = fit("lightgbm", reg_lambda=1.5), fit("lightgbm", **{name: 1.5})
    assert np.array_equal(expected.predict(VALI.X), found.predict(VALI.X))


@pytest.mark.parametrize(("library", "dart"), [
    ("xgboost", {"booster": "dart", "rate_drop": 0.5}), ("lightgbm", {"boosting_type": "dart"}),
    ("lightgbm", {"boost": "DART"}),
])  # fmt: skip
@pytest.mark.parametrize("own", [True, False], ids=["ours", "native"])
def test_dart_has_no_best_round(library, dart, own):
    objective, stop = PATHS["random"] if own else NATIVE[library], {"early_stopping_rounds": 3}
    going_on = fit(library, objective, EVAL, **dart)
    assert going_on.best_iteration_ == 8
    refused = [(dart, stop)]
    if library == "xgboost":
        by_callback = {"callbacks": [xgb.callback.EarlyStopping(rounds=3)]}
        refused += [(dart, by_callback), ({}, stop | {"init_model": going_on})]
    for params, given in refused:
        with pytest.raises(LTRError, match="best round"):
            fit(library, objective, {**EVAL, **given}, **params)


@pytest.mark.parametrize(
    ("library", "name"),
    [(library, name) for library, facts in TABLES.items() for name in facts.names("early_stopping_rounds")],
)
def test_early_stopping_is_the_same_under_all_names(library, name):
    """It looks at the first metric on the last eval set."""
    two = {"eval_set": [(TRAIN.X, TRAIN.y), (VALI.X, VALI.y)], "eval_qid": [TRAIN.qid, VALI.qid]}
    params = {"eval_metric": ["mrr", "ndcg@10"], "n_estimators": 60, "learning_rate": 1.0}
    expected, found = fit(library, given={**two, "early_stopping_rounds": 4}, **params), fit(
        library, given=two, **params, **{name: 4}
    )  # fmt: skip
    assert found.evals_result_ == expected.evals_result_
    assert found.best_iteration_ == expected.best_iteration_ < 60
    with pytest.raises(LTRError, match="eval_set"):
        fit(library, **{name: 4})
    if library == "lightgbm":
        assert fit(library, given=EVAL, **{name: 0}).best_iteration_ == 8


@pytest.mark.parametrize("objective", ["yetiloss:map", "lambdarank", "auto"])
def test_lightgbm_s_least_improvement_counts(objective):
    stop = {"early_stopping_rounds": 5, "early_stopping_min_delta": 0.9}
    assert fit("lightgbm", objective, EVAL, n_estimators=20, eval_metric="map", **stop).best_iteration_ == 1


@everywhere
def test_the_seed_of_the_ranker_reaches_the_draws_of_an_objective_without_one(library):
    drawn, names = PATHS["random"], TABLES[library].names("random_state")
    expected = fit(library, replace(drawn, seed=7)).predict(VALI.X)
    for name in names:
        assert np.array_equal(fit(library, drawn, **{name: 7}).predict(VALI.X), expected)
        assert np.array_equal(fit(library, replace(drawn, seed=7), **{name: 8}).predict(VALI.X), expected)
        written = fit(library, replace(drawn, seed=0), **{name: 7}).predict(VALI.X)
        assert np.array_equal(written, fit(library, drawn).predict(VALI.X))
    assert not np.array_equal(fit(library, drawn).predict(VALI.X), expected)
    assert np.array_equal(fit(library, drawn, **{names[0]: 0}).predict(VALI.X), fit(library, drawn).predict(VALI.X))
    summed = fit(library, Mixture([drawn, "queryrmse"]), **{names[0]: 7}).predict(VALI.X)
    assert np.array_equal(summed, fit(library, Mixture([replace(drawn, seed=7), "queryrmse"])).predict(VALI.X))


def test_lightgbm_s_random_forests_stop_early():
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "eval_metric": "map"}
    fitted = fit("lightgbm", "lambdarank", {**EVAL, "early_stopping_rounds": 2}, **forest)
    kept = fitted.best_score_["validation_0"]["map"]  # unlike dart, a forest does not change earlier trees
    assert fitted.score(VALI.X, VALI.y, qid=VALI.qid) == pytest.approx(kept, abs=1e-12)
