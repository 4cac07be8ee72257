"""The engine of trials: a training has its budget, stops by our metric, and predicts with its best number of trees."""

import json
from dataclasses import replace

import catboost
import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from rankers import LIBRARIES

from ltr_objectives import LTRError, Objective, get_metric, get_objective, libraries
from ltr_objectives.adapters._run import Run
from ltr_objectives.candidates import labels_for, natives_for
from ltr_objectives.datasets import RankingFold, make_ranking, make_ranking_fold
from ltr_objectives.objectives.typical import typical_size
from ltr_objectives.queries import Queries
from ltr_objectives.workbench import trials
from ltr_objectives.workbench.trials import Budget, Trial

everywhere = pytest.mark.parametrize("library", LIBRARIES)
NATIVES = [(name, n) for name, facts in libraries.LIBRARIES.items() for n in facts.natives if facts.knows(n)]
METRICS = ("ndcg", "ndcg@5", "dcg", "map", "mrr@5", "err")
MODES = [(name, n) for name, facts in libraries.LIBRARIES.items() for m in METRICS
         for n in natives_for(name, get_metric(m)) if n not in facts.natives]  # fmt: skip
MEASURED = [(name, n) for name, n in NATIVES + MODES if libraries.LIBRARIES[name].twin(n) is not None]
TWINS = [(name, n, twin) for name, n in NATIVES + MODES if (twin := libraries.LIBRARIES[name].twin(n))]
FOLD = make_ranking_fold((12, 6, 8), seed=2, features=20, mean_length=15)
TINY = Budget(trees=15, leaves=4, patience=3, min_child_weight=1e-3, documents=0.0)


def ran(library, objective, *metrics, budget=TINY, fold=FOLD):
    return trials.run(Trial(library, objective, budget), fold, [get_metric(name) for name in metrics])


@everywhere
@pytest.mark.parametrize("metric", ["ndcg@5", "dcg"])
def test_every_training_stops_on_our_metric_and_predicts_with_its_best_tree(library, metric):
    for objective in (libraries.LIBRARIES[library].rivals[0], "yetiloss:mrr"):
        same = RankingFold(FOLD.train, FOLD.vali, FOLD.vali)
        found = ran(library, objective, metric, "map", fold=same)
        assert len(found.curve) == min(15, found.rounds + 3)
        assert found.rounds == 1 + np.argmax(found.curve)
        assert np.nanmean(found.values[metric]) == pytest.approx(found.vali, abs=1e-5) == max(found.curve)
        assert found.values["map"].shape == (6,)


@everywhere
def test_the_same_training_gives_the_same_numbers_and_the_seed_reaches_our_objectives(library):
    a, b = (ran(library, "yetirank", "map", budget=replace(TINY, threads=n)) for n in (1, 2))
    assert a.curve == b.curve
    assert a.curve != ran(library, "yetirank", "map", budget=replace(TINY, seed=7)).curve


@everywhere
@pytest.mark.parametrize("place", [(Run, "with_l2"), (Objective, "compute"), (Queries, "check_order")], ids=str)
def test_a_bug_of_ours_is_no_error_of_the_user(library, place, monkeypatch):
    monkeypatch.setattr(*place, lambda *_, **__: None + 1)
    with pytest.raises(TypeError, match="NoneType"):
        ran(library, "yetiloss", "map")


BINARY = [("xgboost", "rank:map"), ("catboost", "YetiRank:mode=MAP"), ("catboost", "YetiRank:mode=MRR;top=5")]


@pytest.mark.parametrize(("library", "binary"), BINARY)
@pytest.mark.parametrize("threshold", [0, 1.5])
def test_natives_without_grades_learn_what_is_relevant_to_the_goal(library, binary, threshold):
    goal, rival = f"map(threshold={threshold})", libraries.LIBRARIES[library].rivals[0]
    relevant = replace(FOLD.train, y=np.where(FOLD.train.y > threshold, 4, 0).astype(np.float32))
    split = RankingFold(relevant, FOLD.vali, FOLD.test)
    assert ran(library, binary, goal).curve == ran(library, binary, goal, fold=split).curve
    assert ran(library, rival, goal).curve != ran(library, rival, goal, fold=split).curve


@pytest.mark.parametrize("metric", ["err", "err(grades=linear)"])
def test_natives_whose_labels_are_chances_learn_those_of_the_goal(metric):
    def scores(labels, goal):
        data = replace(FOLD.train, y=labels)
        ranker, _ = trials.train(Trial("catboost", "YetiRank:mode=ERR", TINY), data, None, [get_metric(goal)])
        return ranker.predict(FOLD.test.X)

    y = FOLD.train.y
    assert np.array_equal(scores(y, metric), scores(get_metric(metric).gain(y), "err(grades=identity)"))


def test_splits_in_catboost_have_noise_only_where_they_are_told_to():
    def curve(objective, *params, **fields):
        return ran("catboost", objective, "map", budget=replace(TINY, trees=4, params=params, **fields)).curve

    none, some = ("random_strength", 0), ("random_strength", 1)
    assert curve("queryrmse") == curve("queryrmse", none) != curve("queryrmse", some)
    assert curve("YetiRank") == curve("YetiRank", none) != curve("YetiRank", some)
    own = curve("YetiRank", defaults=True)
    assert own == curve("YetiRank", some, defaults=True) != curve("YetiRank", none, defaults=True)


@everywhere
def test_documents_are_hessians_of_the_native_objective(library):
    queries = Queries(FOLD.train.y, FOLD.train.group)
    budget = Budget(documents=50.0, min_child_weight=2.0)
    facts = libraries.LIBRARIES[library]
    for objective in (*facts.rivals, "lambdamart"):
        found = trials.params_of(library, objective, budget, queries)
        twin = facts.twin(objective)
        unit = typical_size(get_objective(twin), queries).hessian if twin else 1.0
        assert [*facts.given(facts.l2, found).values()] == pytest.approx([50 * unit])
        if facts.least_hessian:
            assert facts.leaf_limit(found)[1] == pytest.approx(2 * unit)


@pytest.mark.parametrize(("library", "native"), MEASURED)
def test_documents_have_the_hessians_of_native_objectives(library, native):
    """Which each library adds up for a leaf; CatBoost shows only how they and the L2 shrink its value."""
    data = make_ranking(60, mean_length=20, features=10)
    labels, _ = labels_for(library, native, data.y, get_metric("err"))

    def of_xgboost():
        params = {"objective": native, "max_depth": 1, "min_child_weight": 0, "base_score": 0}
        booster = xgb.train(params, xgb.DMatrix(data.X, labels, group=data.group), 1)
        return booster.trees_to_dataframe()["Cover"][0]

    def of_lightgbm():
        params = {"objective": native, "num_leaves": 2, "min_sum_hessian_in_leaf": 0, "verbose": -1}
        tree = lgb.train(params, lgb.Dataset(data.X, labels, group=data.group), 1).trees_to_dataframe()
        return tree["weight"][tree["left_child"].isna()].sum()

    def of_catboost():
        params = {
            "objective": native + ":metric=NDCG" * (native == "StochasticRank"), "iterations": 1, "depth": 1,
            "bootstrap_type": "No", "random_strength": 0, "leaf_estimation_backtracking": "No", "thread_count": 1,
            "allow_writing_files": False, "verbose": 0,
        }  # fmt: skip
        pool = catboost.Pool(np.arange(len(labels))[:, None] % 2, labels, group_id=data.qid)
        steps = [catboost.CatBoost({**params, "l2_leaf_reg": l2}).fit(pool).get_leaf_values() for l2 in (1e-9, 1.0)]
        return np.sum(steps[1] / (steps[0] - steps[1]))

    total = {"xgboost": of_xgboost, "lightgbm": of_lightgbm, "catboost": of_catboost}[library]()
    twin = libraries.LIBRARIES[library].twin(native)
    hess = np.ones(len(labels))
    if twin:
        _, hess = get_objective(twin).gradient_hessian(np.zeros(len(labels)), labels, data.group)
    assert total == pytest.approx(hess.sum(), rel=0.2 if library == "catboost" else 1e-5)  # of random rankings


@pytest.mark.parametrize(("library", "native", "twin"), TWINS)
def test_native_objectives_train_like_their_twins_at_the_same_documents(library, native, twin, rng):
    """Trees have no choice between two features of two values, so that the values of leaves alone may differ."""
    data = make_ranking(200, mean_length=20, features=10)
    labels, _ = labels_for(library, native, data.y, get_metric("err"))
    X = data.y[:, None] + rng.normal(scale=2.0, size=(len(labels), 2)) > 1
    data, metrics = replace(data, X=X.astype(np.float32), y=labels), [get_metric("map")]
    trial = Trial(library, native, Budget(trees=20, leaves=4, documents=5000.0))  # far above those in a leaf
    rankers = [trials.train(each, data, None, metrics)[0] for each in (trial, trial._replace(objective=twin))]
    expected, found = (scores - scores.mean() for scores in (ranker.predict(data.X) for ranker in rankers))
    # other random numbers make up to 0.026 in five seeds, LightGBM's table of sigmoids 5e-6, and half the L2 0.09
    tolerance = 0.04 if get_objective(twin).facts.random else 1e-4
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.ptp(expected))


def config(model):
    """Return the parameters of a trained model."""
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
    facts = libraries.LIBRARIES[library]
    given = {"objective": native, "learning_rate": 0.2, facts.threads: 1, facts.seed: 3, **facts.reproducible()}
    quiet = {"verbose": 0, "allow_writing_files": False, "iterations": 3}
    alone = {
        "xgboost": lambda: xgb.train(given, xgb.DMatrix(data.X, data.y, qid=data.qid), 3),
        "lightgbm": lambda: lgb.train({**given, "verbose": -1}, lgb.Dataset(data.X, data.y, group=data.group), 3),
        "catboost": lambda: catboost.CatBoost(given | quiet).fit(catboost.Pool(data.X, data.y, group_id=data.qid)),
    }[library]()
    made, _ = trials.train(Trial(library, native, budget), data, None, [get_metric("ndcg@5")])
    assert config(made.booster_) == config(alone)
    expected = facts.predict(alone, FOLD.test.X, {})
    np.testing.assert_allclose(made.predict(FOLD.test.X), expected, rtol=1e-6)


@everywhere
def test_natives_are_planned_at_defaults_and_budgets_with_the_user_s_parameters_in_both(library):
    facts = libraries.LIBRARIES[library]
    l2 = next(iter(facts.given(facts.l2, facts.shaped(4, 1.0, 1.0))))
    params = (("learning_rate", 0.25), (l2, 7))
    budgets = [replace(TINY, leaves=leaves, documents=20.0, params=params) for leaves in (4, 8)]
    for native in filter(facts.knows, facts.natives):
        own = [t.budget for t in trials.trials(library, native, budgets)]
        like_ours = [] if facts.twin(native) is None else budgets
        assert own == [*(replace(b, defaults=True) for b in budgets), *like_ours]
        for budget in own:
            assert set(params) <= set(trials.params_of(library, native, budget, Queries([0, 1], [2])).items())
    assert [t.budget for t in trials.trials(library, "queryrmse", budgets)] == budgets


@everywhere
def test_natives_whose_hessians_are_not_known_are_trained_at_defaults_alone(library, monkeypatch):
    facts = libraries.LIBRARIES[library]
    native, runs, train = facts.rivals[0], [], facts.train
    monkeypatch.setattr(type(facts), "natives", {native: None})
    monkeypatch.setattr(type(facts), "train", lambda _, run: runs.append(run) or train(run))
    assert [t.budget.defaults for t in trials.trials(library, native, [TINY])] == [True]
    chosen = trials.fit(library, "auto", [get_metric("mrr")], {"n_estimators": 2}, FOLD.train, FOLD.vali, 3)[0]
    assert [run.objective for run in runs].count(native) == 1
    assert next(each for each in chosen.report_ if each.objective == native).params == {}


def test_splits_keep_every_query_once():
    train, vali = trials.split_vali(FOLD.train, seed=5)
    assert (len(train.group), len(vali.group)) == (10, 2)
    assert sorted([*np.unique(train.qid), *np.unique(vali.qid)]) == list(np.unique(FOLD.train.qid))
    assert np.array_equal(trials.split_vali(FOLD.train, seed=5)[0].qid, train.qid)
    with pytest.raises(LTRError, match="single"):
        trials.split_vali(FOLD.train.select([0]), seed=5)
    splits = trials.cross_validation(FOLD.train, 4, 0)
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(12))
    assert all(sorted(np.concatenate(split)) == list(range(12)) for split in splits)
