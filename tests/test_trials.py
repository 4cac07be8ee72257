"""The engine of trials: a training has its budget, stops by our metric, and predicts with its best number of trees."""

import json
from dataclasses import replace

import numpy as np
import pytest
from rankers import LIBRARIES

for name in (*LIBRARIES, "pandas", "scipy"):
    pytest.importorskip(name)
import catboost  # noqa: E402 - skipped without
import lightgbm as lgb  # noqa: E402 - skipped without
import xgboost as xgb  # noqa: E402 - skipped without

from ltr_objectives import LTRError, evaluate, get_metric, get_objective, libraries  # noqa: E402 - as above
from ltr_objectives.datasets import RankingFold, make_ranking, make_ranking_fold  # noqa: E402 - as above
from ltr_objectives.objectives.typical import typical  # noqa: E402 - as above
from ltr_objectives.queries import Queries  # noqa: E402 - as above
from ltr_objectives.workbench import trials  # noqa: E402 - as above
from ltr_objectives.workbench.trials import Budget, Trial  # noqa: E402 - as above

everywhere = pytest.mark.parametrize("library", LIBRARIES)
NATIVES = [(name, n) for name, facts in libraries.LIBRARIES.items() for n in facts.natives if facts.knows(n)]
FOLD = make_ranking_fold((12, 6, 8), seed=2, features=20, mean_length=15)
TINY = Budget(trees=15, leaves=4, patience=3)


def trial(library, objective, *metrics, budget=TINY, stop=""):
    return Trial(library, objective, objective, metrics, budget, stop=stop)


def trained(library, objective, *metrics, budget=TINY, fold=FOLD):
    return trials.train(trial(library, objective, *metrics, budget=budget), fold.train, fold.vali)


@everywhere
@pytest.mark.parametrize("metric", ["ndcg@5", "mrr", "dcg"])
def test_every_training_stops_on_our_metric_and_predicts_with_its_best_tree(library, metric):
    for objective in (libraries.LIBRARIES[library].rivals[0], "yetiloss:mrr"):
        training = trained(library, objective, metric)
        curve, best = training.curves[metric], training.best(metric)
        assert len(curve) == min(15, best + 3)
        value = evaluate(metric, training.scores(FOLD.vali.X, best), FOLD.vali.y, FOLD.vali.group)
        assert max(curve) == pytest.approx(value, abs=1e-5)


@everywhere
def test_with_several_metrics_each_stops_where_it_would_have_alone(library):
    metrics = "mrr", "ndcg@5", "recall@3"
    whole = trial(library, "lambdamart", *metrics)
    together = trials.measure(whole, FOLD, trials.train(whole, FOLD.train, FOLD.vali))
    for metric in metrics:
        one = trial(library, "lambdamart", metric)
        alone = trials.measure(one, FOLD, trials.train(one, FOLD.train, FOLD.vali))
        for field in ("trees", "vali", "train", "test"):
            assert together[field][metric] == alone[field][metric]
    assert len(set(together["trees"].values())) > 1
    first = replace(whole, stop="mrr")
    stopped = trials.measure(first, FOLD, trials.train(first, FOLD.train, FOLD.vali))
    assert set(stopped["curves"]) == {"mrr"}
    assert stopped["trees"] == dict.fromkeys(metrics, together["trees"]["mrr"])
    assert stopped["test"]["mrr"] == together["test"]["mrr"]


@everywhere
def test_the_same_training_gives_the_same_numbers_and_the_seed_reaches_our_objectives(library):
    a, b = (trained(library, "yetirank", "map", budget=replace(TINY, threads=n)) for n in (1, 2))
    assert a.curves == b.curves
    assert a.curves != trained(library, "yetirank", "map", budget=replace(TINY, seed=7)).curves
    found = trials.objective_of(trial(library, "yetiloss:map+.3*queryrmse", "map", budget=replace(TINY, seed=7)))
    assert found == get_objective("yetiloss:map;seed=7+.3*queryrmse")


@everywhere
def test_the_library_s_errors_are_ours(library):
    wrong = replace(TINY, params=(("reg_lambda", "deep"),))
    with pytest.raises(LTRError):
        trained(library, libraries.LIBRARIES[library].rivals[0], "map", budget=wrong)


BINARY = [("xgboost", "rank:map"), ("catboost", "YetiRank:mode=MAP"), ("catboost", "YetiRank:mode=MRR;top=5")]


@pytest.mark.parametrize(("library", "binary"), BINARY)
@pytest.mark.parametrize("threshold", [0, 1.5])
def test_natives_without_grades_learn_what_is_relevant_to_the_goal(library, binary, threshold):
    goal, rival = f"map(threshold={threshold})", libraries.LIBRARIES[library].rivals[0]
    relevant = replace(FOLD.train, y=np.where(FOLD.train.y > threshold, 4, 0).astype(np.float32))
    split = RankingFold(relevant, FOLD.vali, FOLD.test)
    assert trained(library, binary, goal).curves == trained(library, binary, goal, fold=split).curves
    assert trained(library, rival, goal).curves != trained(library, rival, goal, fold=split).curves


def test_splits_in_catboost_have_noise_only_where_they_are_told_to():
    def curve(objective, *params, **fields):
        return trained("catboost", objective, "map", budget=replace(TINY, trees=4, params=params, **fields)).curves

    none, some = ("random_strength", 0), ("random_strength", 1)
    assert curve("queryrmse") == curve("queryrmse", none) != curve("queryrmse", some)
    assert curve("YetiRank") == curve("YetiRank", none) != curve("YetiRank", some)
    own = curve("YetiRank", defaults=True)
    assert own == curve("YetiRank", some, defaults=True) != curve("YetiRank", none, defaults=True)


@everywhere
def test_documents_are_hessians_of_the_native_objective(library):
    queries = Queries(FOLD.train.y, FOLD.train.group)
    budget = Budget(documents=50.0, min_child_weight=2.0, l2=3.0)
    for native in libraries.LIBRARIES[library].rivals:
        found = trials.regularised(library, budget, native, queries)
        twin = libraries.LIBRARIES[library].natives[native]
        unit = typical(get_objective(twin), queries).hessian if twin else 1.0
        assert (found.l2, found.min_child_weight) == pytest.approx((50 * unit, 2 * unit))
        raw = trials.regularised(library, replace(budget, documents=0.0), native, queries)
        assert (raw.l2, raw.min_child_weight) == (3.0, 2.0)
    assert trials.regularised(library, budget, get_objective("lambdamart"), queries).l2 == 50


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_without_documents_ours_is_regularised_in_the_units_of_its_own_hessians(library):
    budget = replace(TINY, trees=5, l2=0.3, min_child_weight=0.1)
    found = trained(library, "lambdamart", "map", budget=budget)
    objective = get_objective("lambdamart")
    unit = typical(objective, Queries(FOLD.train.y, FOLD.train.group)).hessian
    same = replace(budget, documents=0.3 / unit, min_child_weight=0.1 / unit)
    again = trained(library, "lambdamart", "map", budget=same)
    np.testing.assert_allclose(found.scores(FOLD.vali.X, 1), again.scores(FOLD.vali.X, 1), rtol=1e-5)
    other = trained(library, "lambdamart", "map", budget=replace(budget, documents=0.3))
    assert np.abs(found.scores(FOLD.vali.X, 1) - other.scores(FOLD.vali.X, 1)).max() > 1e-3


@pytest.mark.parametrize(("library", "native"), [key for key in NATIVES if key[0] != "catboost"])
def test_twins_have_the_hessians_of_native_objectives(library, native):
    data = make_ranking(60, mean_length=20, features=10)
    labels = (data.y > 0).astype(float) if native == "rank:map" else data.y
    if library == "xgboost":
        params = {"objective": native, "max_depth": 1, "min_child_weight": 0, "base_score": 0}
        booster = xgb.train(params, xgb.DMatrix(data.X, labels, group=data.group), 1)
        total = booster.trees_to_dataframe()["Cover"][0]
    else:
        params = {"objective": native, "num_leaves": 2, "min_sum_hessian_in_leaf": 0, "verbose": -1}
        tree = lgb.train(params, lgb.Dataset(data.X, labels, group=data.group), 1).trees_to_dataframe()
        total = tree["weight"][tree["left_child"].isna()].sum()
    twin = get_objective(libraries.LIBRARIES[library].natives[native])
    _, hess = twin.gradient_hessian(np.zeros(len(labels)), labels, data.group)
    assert total == pytest.approx(hess.sum(), rel=1e-5)


def config(model):
    """The parameters of a trained model."""
    if isinstance(model, xgb.Booster):
        found = json.loads(model.save_config())["learner"]
        return found["gradient_booster"], found["objective"], found["generic_param"]
    if isinstance(model, lgb.Booster):
        lines = model.model_to_string().partition("\nparameters:")[2].partition("end of parameters")[0].split("\n")
        return {line for line in lines if not line.startswith(("[metric:", "[objective:"))}
    return {
        name: value for name, value in model.get_all_params().items() if name not in ("eval_metric", "use_best_model")
    }


@pytest.mark.parametrize(("library", "native"), NATIVES)
def test_natives_train_at_the_defaults_of_their_library_too(library, native):
    """Everything but the learning rate, the trees, the threads and the seed, whatever the budget says of the rest."""
    data = FOLD.train if native != "rank:map" else replace(FOLD.train, y=(FOLD.train.y > 0).astype(np.float32))
    native += ":metric=NDCG" if native == "StochasticRank" else ""
    budget = Budget(trees=3, leaves=4, documents=50.0, min_child_weight=9.0, learning_rate=0.2, seed=3, defaults=True)
    given = {"xgboost": "seed", "lightgbm": "seed", "catboost": "random_seed"}[library]
    given = {"learning_rate": 0.2, libraries.LIBRARIES[library].threads: 1, given: 3}
    if library == "xgboost":
        ordered = xgb.DMatrix(data.X, data.y, qid=data.qid)
        alone = xgb.train({"objective": native, **given}, ordered, 3)
    elif library == "lightgbm":
        given |= {"objective": native, "deterministic": True, "force_col_wise": True, "verbose": -1}
        alone = lgb.train(given, lgb.Dataset(data.X, data.y, group=data.group), 3)
    else:
        pool = catboost.Pool(data.X, data.y, group_id=data.qid)
        given |= {"loss_function": native, "verbose": 0, "allow_writing_files": False, "iterations": 3}
        alone = catboost.CatBoost(given).fit(pool)
    made = trials.train(trial(library, native, "ndcg@5", budget=budget), data, None).ranker
    assert config(made.booster_) == config(alone)
    table = xgb.DMatrix(FOLD.test.X) if library == "xgboost" else FOLD.test.X
    np.testing.assert_allclose(made.predict(FOLD.test.X), alone.predict(table), rtol=1e-6)


@everywhere
def test_natives_are_planned_at_defaults_and_budgets_with_the_user_s_parameters_in_both(library):
    facts = libraries.LIBRARIES[library]
    l2 = {"xgboost": "reg_lambda", "lightgbm": "lambda_l2", "catboost": "l2_leaf_reg"}[library]
    params = (("learning_rate", 0.25), (l2, 7))
    budgets = [replace(TINY, leaves=leaves, documents=20.0, params=params) for leaves in (4, 8)]
    planned = trials.plan([library], ["queryrmse"], facts.natives, ["map"], budgets)
    for native in filter(facts.knows, facts.natives):
        own = [t.budget for t in planned if t.objective == native]
        assert own == [*(replace(b, defaults=True) for b in budgets), *budgets]
        for budget in own:
            found = trials.params_of(library, trials.regularised(library, budget, native, Queries([0, 1], [2])))
            assert set(params) <= set(found.items())
    assert [t.budget for t in planned if not t.native] == budgets


def test_a_copy_of_a_native_objective_is_level_with_it():
    """Both have the same regularisation in documents, although their Hessians differ in scale."""
    budget = replace(TINY, documents=20.0, min_child_weight=1.0)
    own, copied = (trained("lightgbm", name, "ndcg@5", budget=budget).curves["ndcg@5"]
                   for name in ("lambdarank", "lambdamart:preset=lightgbm"))  # fmt: skip
    assert copied == pytest.approx(own, abs=1e-3)


@everywhere
def test_a_smoothed_metric_is_the_mean_over_noisy_scores(library):
    budget = replace(TINY, trees=2, smooth=("mrr",))
    training = trained(library, "lambdamart", "mrr", "map", budget=budget)
    scores = training.scores(FOLD.vali.X, 2)
    noise = np.random.default_rng(0).standard_normal((trials.DRAWS, len(scores))) * trials.NOISE * scores.std()
    noisy = [evaluate("mrr", scores + each, FOLD.vali.y, FOLD.vali.group) for each in noise]
    assert training.curves["mrr"][1] == pytest.approx(np.mean(noisy), abs=1e-3)  # near ties, in float32
    assert training.curves["map"][1] == pytest.approx(evaluate("map", scores, FOLD.vali.y, FOLD.vali.group), abs=1e-5)


def test_splits_keep_every_query_once():
    train, vali = trials.split_vali(FOLD.train, seed=5)
    assert (len(train.group), len(vali.group)) == (10, 2)
    assert sorted([*np.unique(train.qid), *np.unique(vali.qid)]) == list(np.unique(FOLD.train.qid))
    assert np.array_equal(trials.split_vali(FOLD.train, seed=5)[0].qid, train.qid)
    with pytest.raises(LTRError, match="single train query"):
        trials.split_vali(FOLD.train.select([0]), seed=5)
    splits = trials.cross_validation(FOLD.train, 4, 0)
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(12))
    assert all(sorted(np.concatenate(split)) == list(range(12)) for split in splits)


def test_natives_are_given_to_the_library_that_knows_them_in_its_own_words():
    natives = ["rank:pairwise", "StochasticRank:metric={metric}", "YetiRank:mode={metric}"]
    planned = trials.plan(["xgboost", "catboost"], ["yetirank"], natives, ["ndcg@10", "map"], [TINY])
    assert list(dict.fromkeys((t.library, t.objective, t.native, t.metrics) for t in planned)) == [
        ("xgboost", "rank:pairwise", True, ("ndcg@10", "map")),
        ("xgboost", "yetirank", False, ("ndcg@10", "map")),
        ("catboost", "StochasticRank:metric=NDCG;top=10", True, ("ndcg@10",)),  # it has no MAP
        ("catboost", "YetiRank:mode=NDCG;top=10", True, ("ndcg@10",)),
        ("catboost", "YetiRank:mode=MAP", True, ("map",)),
        ("catboost", "yetirank", False, ("ndcg@10", "map")),
    ]
    assert get_metric("map").name == "map"
