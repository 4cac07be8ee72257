"""objective="auto": the model of the candidate with the best metric on the eval set, and the evidence for it."""

import pickle

import numpy as np
import pytest
from rankers import EVAL, LIBRARIES, NATIVE, TEST, TRAIN, VALI, everywhere, fit, query_weights, ranker
from sklearn.base import clone

from ltr_objectives import Metric, Queries, evaluate, get_metric, get_objective
from ltr_objectives.candidates import natives_for, ours_for
from ltr_objectives.libraries import LIBRARIES as CATALOG
from ltr_objectives.objectives.typical import typical_size
from ltr_objectives.statistics import contest_table


def fitted(library, objective="auto", metric="map", params=None, **given):
    return fit(library, objective, {"early_stopping_rounds": 3, **EVAL, **given}, eval_metric=metric, **(params or {}))


def like_ours(library, native):
    """Return our defaults in the units of a native objective: an L2 of 20 documents, and its least Hessian."""
    twin = CATALOG[library].twin(native)
    unit = typical_size(get_objective(twin), Queries(TRAIN.y, TRAIN.group)).hessian if twin else 1.0
    return {
        "xgboost": {"reg_lambda": 20 * unit, "min_child_weight": unit},
        "lightgbm": {"reg_lambda": 20 * unit, "min_sum_hessian_in_leaf": 1e-3 * unit},
        "catboost": {"l2_leaf_reg": 20 * unit, "bootstrap_type": "No", "random_strength": 0},
    }[library]


def trained_alone(library, objective, metric, given):
    """Return the ranker of one objective: of a native one, the better of its library's defaults and ours."""
    settings = [{}]
    if isinstance(objective, str):
        settings.append({name: v for name, v in like_ours(library, objective).items() if name not in given})
        if library == "catboost" and "subsample" in given:
            settings[1]["bootstrap_type"] = "Bernoulli"
    found = [fitted(library, objective, metric, {**params, **given}) for params in settings]
    values = [evaluate(metric, each.predict(VALI.X), VALI.y, VALI.group) for each in found]
    best = int(np.argmax(values))
    return found[best], settings[best]


@pytest.mark.parametrize(("library", "of_user"), [*((name, False) for name in LIBRARIES), ("lightgbm", True)])
def test_the_model_is_that_of_the_best_candidate(library, of_user):
    given = {CATALOG[library].l2: 3.0, "subsample": 0.7} if of_user else {}
    given |= {"subsample_freq": 1} if of_user and library == "lightgbm" else {}
    found, metric = fitted(library, params=given), "map"
    natives = natives_for(library, get_metric(metric))
    tried = {**ours_for(get_metric(metric)), **{n: n for n in natives}}
    assert sorted(each.objective for each in found.report_) == sorted(tried)
    alone, values = {}, {}
    trained = [each for each in found.report_ if not each.left_out]
    assert all(CATALOG[library].is_binary(each.objective) for each in found.report_ if each.left_out)
    for each in trained:
        assert each.native == (each.objective in natives)
        alone[each.objective], params = trained_alone(library, tried[each.objective], metric, given)
        assert each.params == pytest.approx(params)
        assert each.rounds == alone[each.objective].best_iteration_
        scores = alone[each.objective].predict(VALI.X)
        values[each.objective] = evaluate(metric, scores, VALI.y, VALI.group, per_query=True)
    chosen = found.report_[0].objective
    best = alone[chosen]
    assert values[chosen].mean() == max(each.mean() for each in values.values())
    assert found.objective_ == best.objective_
    assert np.array_equal(found.predict(TEST.X), best.predict(TEST.X))
    assert (found.evals_result_, found.best_score_) == (best.evals_result_, best.best_score_)
    expected = {row.objective: row for row in contest_table(values, None, chosen)}
    for i, each in enumerate(trained):
        row = expected[each.objective]
        assert each.value == pytest.approx(row.mean, abs=1e-12)
        evidence = (row.difference, row.difference_se, row.p) if i else (None, None, None)
        assert (each.difference, each.se, each.p) == pytest.approx(evidence)


@everywhere
def test_the_last_eval_set_decides_and_its_weights_count(library):
    weight = query_weights(VALI.group)
    found = fitted(
        library, eval_set=[(TRAIN.X, TRAIN.y), (VALI.X, VALI.y)], eval_qid=[TRAIN.qid, VALI.qid],
        eval_sample_weight=[None, weight],
    )  # fmt: skip
    scores, values = found.predict(VALI.X), [each.value for each in found.report_ if not each.left_out]
    assert values[0] == max(values) == pytest.approx(evaluate("map", scores, VALI.y, VALI.group, weight))
    assert values[0] != pytest.approx(evaluate("map", scores, VALI.y, VALI.group))
    copied = pickle.loads(pickle.dumps(found))
    assert copied.report_ == found.report_
    assert clone(found).get_params()["objective"] == "auto"
    found.set_params(objective="yetiloss:map").fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    assert not hasattr(found, "report_")  # it is of the last training


@everywhere
def test_candidates_that_cannot_be_trained_are_left_out_with_the_reason(library):
    start = fit(library)
    made = ranker(library, "auto")  # without a metric, by the default
    made.fit(
        TRAIN.X, (TRAIN.y > 0).astype(float), qid=TRAIN.qid, propensity=np.ones(len(TRAIN.y)), init_model=start, **EVAL
    )
    reasons = {each.objective: each.left_out for each in made.report_ if each.left_out}
    natives = natives_for(library, get_metric("ndcg@10"))
    assert all("leave propensity= out" in reasons[name] for name in natives)
    assert not made.report_[0].left_out
    assert made.report_[0].value == pytest.approx(made.best_score_["validation_0"]["ndcg@10"], abs=1e-6)
    assert made.best_iteration_ > start.best_iteration_


def test_every_metric_has_candidates(any_metric: Metric):
    objectives = list(ours_for(any_metric).values())
    assert len(objectives) >= 4
    assert all(objectives.count(each) == 1 for each in objectives)
    for library in LIBRARIES:
        natives = natives_for(library, any_metric)
        assert NATIVE[library] in natives
        assert len(set(natives)) == len(natives)


def test_a_candidate_s_name_has_the_options_of_the_convention(any_metric: Metric):
    for convention in (None, *any_metric.conventions):
        for name, objective in ours_for(get_metric(any_metric, convention)).items():
            assert get_objective(name) == objective


@pytest.mark.parametrize("text", ["ndcg@5[other]", "ndcg@5 + 0.5*map[other]"])
def test_it_chooses_for_the_labels_of_goals(text):
    steps = np.quantile(TRAIN.X[:, 1], [0.5, 0.8])
    goals = [np.digitize(part.X[:, 1], steps).astype(float) for part in (TRAIN, VALI)]
    given = {"labels": {"other": goals[0]}, "eval_labels": [{"other": goals[1]}]}
    found, metric = fitted("lightgbm", metric=text, **given), get_metric(text)
    ours = ours_for(metric)
    assert {each.objective for each in found.report_} == {*ours, *natives_for("lightgbm", metric)}
    assert not any(each.left_out for each in found.report_)
    value = evaluate(text, found.predict(VALI.X), {"own": VALI.y, "other": goals[1]}, VALI.group)
    assert found.report_[0].value == pytest.approx(value)
    assert all(each.facts.goals == ("other",) for each in ours.values())
