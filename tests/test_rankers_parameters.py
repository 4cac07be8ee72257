"""Parameters, arguments of ``fit`` and names that the estimators take or refuse, beside the rows of refusals.toml."""

import itertools
import json
import sys
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from catalog import PATHS
from packaging.version import Version
from rankers import EVAL, NATIVE, TRAIN, VALI, everywhere, fit, ranker, ranker_class

from ltr_objectives import (
    LTRError,
    LTRWarning,
    Metric,
    Mixture,
    evaluate,
    get_metric,
    get_objective,
    objective_for,
    registry,
)
from ltr_objectives.adapters import bagged
from ltr_objectives.adapters._run import read_metrics
from ltr_objectives.libraries import LIBRARIES as TABLES
from ltr_objectives.objectives.around import innermost

QUERIES = {"X": TRAIN.X, "y": TRAIN.y, "qid": TRAIN.qid}


# parameters of the library's own objectives


def xgboost_s_own():
    config = json.loads(xgb.Booster({"objective": "rank:ndcg", "num_feature": 1, "nthread": 1}).save_config())
    return set(config["learner"]["objective"]["lambdarank_param"])


def test_the_table_of_parameters_that_ours_do_not_read_is_complete():
    assert xgboost_s_own() <= set(TABLES["xgboost"].unread)
    known = {name for names in TABLES["lightgbm"].aliases() for name in names}
    assert {name for name in known if name.startswith("lambdarank_")} <= set(TABLES["lightgbm"].unread)
    assert known >= {name for name in TABLES["lightgbm"].unread if "bias" not in name}  # since version 4.1


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


def test_cutoffs_of_lightgbm_s_metrics():
    metrics = {"eval_metric": ["ndcg@5", "mean_average_precision"]}
    for objective, params, names in (("yetiloss:map", metrics, ["map@3", "ndcg@5"]), ("lambdarank", {}, ["ndcg@3"])):
        found = fit("lightgbm", objective, EVAL, eval_at=[3], **params)
        assert list(found.evals_result_["validation_0"]) == names


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
    bags = (bagged(ranker(library, **params, **{n: 4}), **QUERIES, bags=2) for n in (name, "early_stopping_rounds"))
    assert len({each.best_iteration_ for each in bags}) == 1
    with pytest.raises(LTRError, match="needs an eval_set"):
        fit(library, **{name: 4})
    if library == "lightgbm":
        assert fit(library, given=EVAL, **{name: 0}).best_iteration_ == 8
        with pytest.raises(LTRError, match="best round"):
            fit(library, given=EVAL, boosting_type="dart", **{name: 4})


@pytest.mark.skipif(Version(lgb.__version__) < Version("4.6"), reason="LightGBM has it in 4.6")
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


@pytest.mark.parametrize("n", [1, -2, 3, None])
def test_lightgbm_s_number_of_threads(n, monkeypatch, tmp_path):
    """It is that of LightGBM's own ranker, in training and in prediction."""
    expected, used = lgb.LGBMRanker()._process_n_jobs(n), []
    train, predict = lgb.train, lgb.Booster.predict

    def trained(params, *arguments, **given):
        used.append(params["num_threads"] if "num_threads" in params else params["n_jobs"])
        return train(params, *arguments, **given)

    def predicted(model, *arguments, **given):
        used.append(given["num_threads"])
        return predict(model, *arguments, **given)

    monkeypatch.setattr(lgb, "train", trained)
    monkeypatch.setattr(lgb.Booster, "predict", predicted)
    fitted = fit("lightgbm", n_jobs=n)
    fitted.score(**QUERIES)
    fitted.save_model(tmp_path / "model.txt")
    ranker_class("lightgbm")(n_jobs=n).load_model(tmp_path / "model.txt").predict(VALI.X)
    assert used == [expected] * 3
    fitted.predict(VALI.X, num_threads=2)
    assert used[-1] == 2


def test_an_xgboost_model_from_a_file_has_the_number_of_threads_of_the_ranker(tmp_path):
    fit("xgboost").save_model(tmp_path / "model.json")
    loaded = ranker_class("xgboost")(n_jobs=1).load_model(tmp_path / "model.json")
    for n in (1, 2):
        config = json.loads(loaded.set_params(n_jobs=n).booster_.save_config())
        assert config["learner"]["generic_param"]["nthread"] == str(n)


def test_no_threads_are_all_threads_in_catboost():
    """CatBoost ends the process."""
    assert fit("catboost", thread_count=0).best_iteration_ == 8


def test_the_metric_under_lightgbm_s_names():
    for name in TABLES["lightgbm"].names("eval_metric"):
        fitted = fit("lightgbm", NATIVE["lightgbm"], EVAL, **{name: "map"})
        assert list(fitted.evals_result_["validation_0"]) == ["map"]
        assert fitted.score(**QUERIES) == evaluate("map", fitted.predict(TRAIN.X), TRAIN.y, qid=TRAIN.qid)


@everywhere
@pytest.mark.parametrize("labels", [lambda y: y - 1.5, lambda y: 500.0 * y])
def test_labels_that_are_no_grades_have_a_metric(library, labels):
    valid = {"eval_set": [(VALI.X, labels(VALI.y))], "eval_qid": [VALI.qid]}
    for given in ({}, valid):
        fitted = ranker(library, "queryrmse").fit(TRAIN.X, labels(TRAIN.y), qid=TRAIN.qid, **given)
        assert [*fitted.evals_result_.get("validation_0", {})] == (["spearman"] if given else [])


def test_lightgbm_s_random_forests_stop_early():
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "eval_metric": "map"}
    fitted = fit("lightgbm", "lambdarank", {**EVAL, "early_stopping_rounds": 2}, **forest)
    kept = fitted.best_score_["validation_0"]["map"]  # unlike dart, a forest does not change earlier trees
    assert fitted.score(VALI.X, VALI.y, qid=VALI.qid) == pytest.approx(kept, abs=1e-12)


# arguments of fit


@everywhere
def test_arguments_of_another_library_are_refused(library):
    own = {"xgboost": "sample_weight_eval_set", "lightgbm": "eval_X", "catboost": "text_features"}
    for name in (*(name for of, name in own.items() if of != library), "foo"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            fit(library, given={name: None})


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_the_library_gets_an_objective_that_shows_what_it_is(library, monkeypatch):
    """Trackers of experiments record the text of a parameter."""
    seen, module = [], sys.modules[library]

    def train(params, *others, plain=module.train, **how):
        seen.append(how.get("obj") or params["objective"])
        return plain(params, *others, **how)

    monkeypatch.setattr(module, "train", train)
    fit(library, "ranknet:sigma=2")
    assert repr(get_objective("ranknet:sigma=2")) in str(seen[0])


def test_xgboost_s_own_arguments_of_fit():
    weight = [np.random.default_rng(0).uniform(1, 2, len(VALI.group))]
    names = ("eval_sample_weight", "sample_weight_eval_set")
    one, two = (fit("xgboost", given={**EVAL, name: weight}).evals_result_ for name in names)
    assert one == two != fit("xgboost", given=EVAL).evals_result_
    assert fit("xgboost", given={"xgb_model": fit("xgboost")}).best_iteration_ == 16
    alone = fit("xgboost", given={"feature_weights": np.eye(10)[0]}, colsample_bytree=0.1)
    assert set(alone.booster_.get_score()) == {"f0"}


def test_lightgbm_s_own_arguments_of_fit():
    expected = fit("lightgbm", given=EVAL).evals_result_
    for X, y in ((VALI.X, VALI.y), ((VALI.X,), (VALI.y,))):
        assert fit("lightgbm", given={"eval_X": X, "eval_y": y, "eval_qid": [VALI.qid]}).evals_result_ == expected
    names = [f"x{i}" for i in range(10)]
    named = fit("lightgbm", "lambdarank", {**EVAL, "feature_name": names, "eval_at": [3]})
    assert named.booster_.feature_name() == names
    assert list(named.evals_result_["validation_0"]) == ["ndcg@3"]


@pytest.mark.parametrize("column", ["kind", 10])
def test_catboost_s_own_arguments_of_fit(column):
    X = pd.DataFrame(TRAIN.X).assign(kind=TRAIN.qid.astype(str)).rename(columns=str)
    X["colour"] = pd.Categorical(TRAIN.qid % 3)
    for named, of_fit in ({}, {"cat_features": [column]}), ({"cat_features": [column]}, {}):
        fitted = ranker("catboost", **named).fit(X, TRAIN.y, qid=TRAIN.qid, **of_fit)
        assert list(fitted.booster_.get_cat_feature_indices()) == [10, 11]


@pytest.mark.filterwarnings("ignore:40 of 40 queries have zero gradient")  # as it has to be
def test_catboost_trains_on_when_there_is_nothing_left_to_learn():
    fitted = ranker("catboost").fit(TRAIN.X, TRAIN.qid % 2, qid=TRAIN.qid)  # equal labels in a query
    assert np.array_equal(fitted.predict(TRAIN.X), np.zeros(len(TRAIN.y)))


def test_a_training_of_catboost_that_ends_before_its_first_tree():
    labels = 8e37 * TRAIN.y.astype(float)
    with pytest.raises(LTRError, match="before its first tree"):
        ranker("catboost", "QuerySoftMax", bootstrap_type="No").fit(TRAIN.X, labels, qid=TRAIN.qid)


# names of objectives and metrics


KNOWN = {
    "xgboost": "rmse mae mape error error@0.7 merror auc aucpr pre pre@5 ndcg@10- map- tweedie-nloglik@1.5 quantile",
    "lightgbm": "l2 mean_absolute_error auc auc_mu average_precision mean_average_precision multi_error quantile",
    "catboost": "NDCG:top=10 MAP PFound RMSE QueryRMSE AverageGain:top=3 FilteredDCG",
}
ENDS = [
    "x", ";ties=worst", "(gain_type=linear)", "@5x", "@5;ties=worst", "@5(gain_type=linear)", "@2.5", "@5@3", "@-", "@",
    " ", "\n", ",", ",map",
]  # fmt: skip


@everywhere
@pytest.mark.parametrize("text", ["yetilos:map", "lambdamrt", "rank:foo", "lambdarank:sigma=2", "MAP"])
def test_text_that_is_neither_ours_nor_the_library_s_is_no_objective(library, text):
    with pytest.raises((LTRError, TABLES[library].exception())):
        fit(library, text)


@everywhere
def test_names_of_ours_are_read_in_any_case(library):
    assert str(innermost(fit(library, "YETILOSS:map", n_estimators=1).objective_)) == "yetiloss:map"
    for name in registry.metric_names():
        ours = name if Metric.named[name].cutoff in ("none", "query") else f"{name}@5"
        native = "@" not in ours and library == "catboost"  # such as AUC
        read = read_metrics([ours.upper(), f"{ours.upper()}[Revenue]"], TABLES[library])
        assert [str(metric) for metric in read] == [ours.upper() if native else ours, f"{ours}[Revenue]"]


@everywhere
def test_a_name_of_a_metric_counts_to_its_last_letter(library):
    """The library would read the beginning of a text that is neither of our grammar nor in its own table."""
    for text in map("".join, itertools.product({*registry.metric_names(), *KNOWN[library].split()}, ENDS)):
        try:
            (read,) = read_metrics(text, TABLES[library])
        except LTRError:
            continue
        if not isinstance(read, str):  # as ndcg(gain_type=linear)
            assert read == get_metric(text)
        elif text != "error@2.5" and ":" not in text:  # CatBoost itself checks what follows ":"
            with pytest.raises((LTRError, TABLES[library].exception())):
                fit(library, eval_metric=text, n_estimators=1)


@everywhere
def test_metrics_of_the_library_are_known_by_its_names(library):
    theirs, *_ = names = KNOWN[library].split()
    assert [str(metric) for metric in read_metrics(names, TABLES[library])] == names
    assert fit(library, None, eval_metric=theirs, n_estimators=1).objective_ == objective_for("ndcg@10")
    fitted = fit(library, NATIVE[library], eval_metric=[theirs], n_estimators=1)
    with pytest.warns(LTRWarning, match=f"eval_metric='{theirs}'"):
        found = fitted.score(**QUERIES)
    for metrics in (["ndcg@10", theirs], None):  # warnings are errors
        assert fitted.set_params(eval_metric=metrics).score(**QUERIES) == found
