"""Parameters that would change nothing: names given twice, and those of the library's own objectives and metrics."""

import itertools
import json

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class

from ltr_objectives import LTRError, LTRWarning, adapters, libraries

xgb, lgb, catboost = (pytest.importorskip(name) for name in ("xgboost", "lightgbm", "catboost"))
pytest.importorskip("sklearn")
DATA, VALI, _ = fold()
TABLES = {library: libraries.LIBRARIES[library] for library in LIBRARIES}
BARE = {library: {k: v for k, v in LIBRARIES[library][1].items() if k == "n_estimators"} for library in LIBRARIES}
# values that are not the default of our counterpart
VALUES = {
    "lambdarank_truncation_level": 3, "lambdarank_norm": True, "sigmoid": 2.5, "objective_seed": 7,
    "lambdarank_position_bias_regularization": 0.5, "lambdarank_pair_method": "mean",
    "lambdarank_num_pair_per_sample": 3, "lambdarank_normalization": True, "lambdarank_score_normalization": True,
    "lambdarank_unbiased": True, "lambdarank_bias_norm": 2.0, "bayesian_matrix_reg": 0.5, "label_gain": [0, 1, 2, 3, 4],
    "ndcg_exp_gain": False, "scale_pos_weight": 5.0, "is_unbalance": True, "reg_sqrt": True, "alpha": 0.3,
    "fair_c": 0.5, "poisson_max_delta_step": 0.5, "tweedie_variance_power": 1.2,
}  # fmt: skip
UNREAD = [(library, name) for library, table in TABLES.items() for name in table.unread]
GAINS = {"lightgbm": "label_gain", "xgboost": "ndcg_exp_gain"}


def fit(library, objective="lambdamart", **params):
    made = ranker_class(library)(objective=objective, **BARE[library], **params)
    return made.fit(DATA.X, DATA.y, qid=DATA.qid)


@pytest.mark.parametrize(("library", "name"), UNREAD)
def test_parameters_of_the_library_s_own_objectives_are_refused(library, name):
    with pytest.raises(LTRError, match=rf"^{name}=.* is read by {library}'s own objectives, .*; leave it out$"):
        fit(library, **{name: VALUES[name]})


def test_lightgbm_s_other_names_of_them_are_refused():
    with pytest.raises(LTRError, match=r"^unbalanced_sets=True is read by lightgbm's own objectives"):
        fit("lightgbm", unbalanced_sets=True)


def xgboost_s_own():
    config = json.loads(xgb.Booster({"objective": "rank:ndcg", "num_feature": 1, "nthread": 1}).save_config())
    return set(config["learner"]["objective"]["lambdarank_param"])


def test_xgboost_s_own_parameters_are_all_in_the_table():
    assert xgboost_s_own() <= set(TABLES["xgboost"].unread)


def test_lightgbm_s_own_parameters_are_all_in_the_table():
    known = {name for names in TABLES["lightgbm"].aliases() for name in names}
    assert {name for name in known if name.startswith("lambdarank_")} <= set(TABLES["lightgbm"].unread)
    assert known >= {name for name in TABLES["lightgbm"].unread if "bias" not in name}  # since version 4.1


@pytest.mark.parametrize(("library", "name"), UNREAD)
def test_the_library_s_own_objective_takes_them(library, name):
    if library == "xgboost" and name not in xgboost_s_own():  # of a later version
        pytest.skip(f"XGBoost {xgb.__version__} does not have it")
    if library == "lightgbm" and not any(name in names for names in TABLES[library].aliases()):
        pytest.skip(f"LightGBM {lgb.__version__} does not have it")
    objective = "YetiRankPairwise" if library == "catboost" else NATIVE[library]
    assert fit(library, objective, **{name: VALUES[name]}).booster_


@pytest.mark.parametrize("name", ["lambdarank_truncation_level", "sigmoid", "label_gain"])
def test_the_same_in_lightgbm_s_own_functions(name):
    params = {"objective": adapters.lightgbm_objective("lambdamart"), "verbose": -1, name: VALUES[name]}
    data = lgb.Dataset(DATA.X, DATA.y, group=DATA.group)
    for train in (
        lambda: lgb.train(params, data, 1),
        lambda: lgb.LGBMRanker(**params, n_estimators=1).fit(DATA.X, DATA.y, group=DATA.group),
    ):
        with pytest.raises(LTRError, match=f"{name}=.* is read by lightgbm's own objectives"):
            train()


def test_in_xgboost_s_own_functions_it_warns_itself():
    data = xgb.DMatrix(DATA.X, DATA.y, qid=DATA.qid)
    with xgb.config_context(verbosity=1), pytest.warns(UserWarning, match="(?s)lambdarank_unbiased.*not used"):
        xgb.train({"lambdarank_unbiased": True}, data, 1, obj=adapters.xgboost_objective("lambdamart"))


@pytest.mark.parametrize(("library", "name"), GAINS.items())
@pytest.mark.parametrize(
    "given", [{}, {"objective": "auto"}, {"objective": "ranknet"}, {"eval_metric": "ndcg"}], ids=str
)
def test_gains_of_the_library_do_not_stand_beside_ours(library, name, given):
    """The training would follow them, and the metric of the report, of early stopping and of ``score`` would not."""
    made = ranker_class(library)(**{**BARE[library], name: VALUES[name], **given})
    with pytest.raises(LTRError, match=f"^{name}=.* is read by {library}'s own objectives"):
        made.fit(DATA.X, DATA.y, qid=DATA.qid, eval_set=[(VALI.X, VALI.y)], eval_qid=[VALI.qid])


def test_cutoffs_are_named_in_the_metric():
    data = {"qid": DATA.qid, "eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}
    for name, given in itertools.product(("eval_at", "ndcg_eval_at"), ({}, {"eval_metric": "map"})):
        with pytest.raises(LTRError, match="eval_at=; name the cutoffs in eval_metric="):
            ranker("lightgbm", **{name: [3]}, **given).fit(DATA.X, DATA.y, **data)
    native = ranker("lightgbm", eval_metric=["ndcg@5", "mean_average_precision"], eval_at=[3]).fit(
        DATA.X, DATA.y, **data
    )
    assert list(native.evals_result_["validation_0"]) == ["map@3", "ndcg@5"]
    own = ranker("lightgbm", "lambdarank", eval_at=[3]).fit(DATA.X, DATA.y, **data)
    assert list(own.evals_result_["validation_0"]) == ["ndcg@3"]


TWICE = [
    ("lightgbm", {"reg_lambda": 3, "lambda_l2": 4}),
    ("lightgbm", {"l2_regularization": 3, "lambda_l2": 3}),
    ("lightgbm", {"learning_rate": 0.3, "eta": 0.2}),
    ("lightgbm", {"n_jobs": 1, "nthread": 2}),
    ("lightgbm", {"verbose": -1, "verbosity": 1}),
    ("lightgbm", {"num_iterations": 3, "n_estimators": 4}),
    ("lightgbm", {"early_stopping_rounds": 3, "early_stopping_round": 4}),
    *(("xgboost", dict(zip(names, (0, 1), strict=True))) for names in TABLES["xgboost"].aliases()),
    ("catboost", {"early_stopping_rounds": 3, "od_wait": 4}),
    ("catboost", {"l2_leaf_reg": 3, "reg_lambda": 4}),
    *(("lightgbm", {"objective": "ranknet", name: "x"}) for name in ("loss", "app", "application", "objective_type")),
    *(("lightgbm", {"eval_metric": "map", name: "x"}) for name in ("metric", "metrics", "metric_types")),
    ("catboost", {"objective": "ranknet", "loss_function": "YetiRank"}),
]


@pytest.mark.parametrize(("library", "given"), TWICE)
def test_one_parameter_under_two_names(library, given):
    names = "|".join(given)
    with pytest.raises(LTRError, match=f"^({names})= and ({names})= are names of one parameter; give one"):
        ranker_class(library)(**given).fit(DATA.X, DATA.y, qid=DATA.qid)
    alone = {name: value for name, value in given.items() if name not in ("objective", "eval_metric")}
    if len(alone) == 1 and "loss_function" not in alone:  # a ranker has an objective and metrics by default
        with pytest.raises(LTRError, match="are names of one parameter"):
            ranker_class(library)(**alone).fit(DATA.X, DATA.y, qid=DATA.qid)


def test_early_stopping_in_fit_and_under_another_name():
    data = {"qid": DATA.qid, "eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid], "early_stopping_rounds": 3}
    for library, name in (("lightgbm", "n_iter_no_change"), ("catboost", "od_wait")):
        with pytest.raises(LTRError, match="are names of one parameter"):
            ranker(library, **{name: 5}).fit(DATA.X, DATA.y, **data)
    assert ranker("lightgbm", early_stopping_rounds=5).fit(DATA.X, DATA.y, **data).booster_


def test_xgboost_s_names_are_those_that_it_sets_together():
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


@pytest.mark.parametrize("name", ["lambda_l2", "l2_regularization", "lambda"])
def test_our_default_l2_does_not_compete_with_the_user_s(name):
    assert ranker_class("lightgbm")(reg_lambda=0.0)._given() == {"reg_lambda": 0.0}
    expected, found = fit("lightgbm", reg_lambda=1.5), fit("lightgbm", **{name: 1.5})
    assert np.array_equal(expected.predict(VALI.X), found.predict(VALI.X))


@pytest.mark.filterwarnings("ignore:0 of .* rounds have a split")
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("labels", ["zero", "large"])
def test_labels_are_not_taken_for_another_byte_order(library, labels):
    y = np.zeros(len(DATA.y)) if labels == "zero" else DATA.y * 2.0**24
    made = ranker(library, "ranknet", n_estimators=2)
    if labels == "large":
        assert made.fit(DATA.X, y, qid=DATA.qid).booster_
        return
    with pytest.warns(LTRWarning, match="40 of 40 queries have zero gradient") as caught:
        made.fit(DATA.X, y, qid=DATA.qid)
    assert not [each for each in caught if "byte order" in str(each.message)]
