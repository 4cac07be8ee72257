"""objective="auto": the model of the candidate with the best metric on the eval set, and the evidence for it."""

import pickle

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, SUFFIX, fold, query_weights, ranker, ranker_class
from scipy import stats

from ltr_objectives import LTRError, Metric, Queries, evaluate, get_metric, get_objective
from ltr_objectives.candidates import natives_for, ours_for
from ltr_objectives.libraries import LIBRARIES as CATALOG
from ltr_objectives.objectives.typical import typical

for name in LIBRARIES:
    pytest.importorskip(name)
from sklearn.base import clone  # noqa: E402 - skipped without

everywhere = pytest.mark.parametrize("library", LIBRARIES)
TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}


def fitted(library, objective="auto", metric="map", params=None, **given):
    made = ranker(library, objective, eval_metric=metric, **(params or {}))
    return made.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **{"early_stopping_rounds": 3, **EVAL, **given})


def like_ours(library, native):
    """The defaults of ours in the units of a native objective: an L2 of 20 documents, and its least Hessian."""
    twin = CATALOG[library].natives.get(native, "")
    unit = typical(get_objective(twin), Queries(TRAIN.y, TRAIN.group)).hessian if twin else 1.0
    return {
        "xgboost": {"reg_lambda": 20 * unit, "min_child_weight": unit},
        "lightgbm": {"reg_lambda": 20 * unit, "min_sum_hessian_in_leaf": 1e-3 * unit},
        "catboost": {"l2_leaf_reg": 20.0, "bootstrap_type": "No", "random_strength": 0},
    }[library]


def trained_alone(library, objective, metric, given=None):
    """The ranker of one objective: of a native one, the better of its library's defaults and those of ours."""
    settings = [{}]
    if isinstance(objective, str):
        settings.append({name: v for name, v in like_ours(library, objective).items() if name not in (given or {})})
        if library == "catboost" and "subsample" in (given or {}):
            settings[1]["bootstrap_type"] = "Bernoulli"
    found = [fitted(library, objective, metric, {**params, **(given or {})}) for params in settings]
    values = [evaluate(metric, each.predict(VALI.X), VALI.y, VALI.group) for each in found]
    best = int(np.argmax(values))
    return found[best], settings[best]


@everywhere
@pytest.mark.parametrize("metric", ["map", "ndcg@5"])
def test_the_model_is_that_of_the_best_candidate(library, metric):
    found = fitted(library, metric=metric)
    tried = {**ours_for(get_metric(metric)), **{n: n for n in natives_for(library, get_metric(metric))}}
    assert [*(each.objective for each in found.report_.candidates), *found.report_.left_out] == list(tried)
    alone, values = {}, {}
    for each in found.report_.candidates:
        assert each.native == (each.objective in natives_for(library, get_metric(metric)))
        alone[each.objective], params = trained_alone(library, tried[each.objective], metric)
        assert each.params == pytest.approx(params)
        values[each.objective] = evaluate(
            metric, alone[each.objective].predict(VALI.X), VALI.y, VALI.group, per_query=True
        )
        assert each.value == pytest.approx(values[each.objective].mean(), abs=1e-12)
        assert each.rounds == alone[each.objective].best_iteration_
    best = max(values, key=lambda label: values[label].mean())
    assert found.report_.chosen == best
    assert found.objective_ == alone[best].objective_
    assert np.array_equal(found.predict(TEST.X), alone[best].predict(TEST.X))
    assert found.evals_result_ == alone[best].evals_result_
    assert found.best_score_ == alone[best].best_score_
    assert found.score(VALI.X, VALI.y, qid=VALI.qid) == pytest.approx(values[best].mean())
    p = {label: stats.ttest_rel(v, values[best]).pvalue for label, v in values.items() if label != best}
    ordered = np.sort(list(p.values()))
    for each in found.report_.candidates:
        if each.objective not in p or not np.any(values[each.objective] - values[best]):
            continue
        difference = values[each.objective] - values[best]
        assert each.difference == pytest.approx(difference.mean())
        assert each.se == pytest.approx(difference.std(ddof=1) / np.sqrt(len(difference)))
        at = int(np.searchsorted(ordered, p[each.objective]))
        holm = max(q * (len(ordered) - i) for i, q in enumerate(ordered[: at + 1]))
        assert each.p == pytest.approx(min(1.0, holm))


@everywhere
def test_an_eval_set_in_which_every_order_is_as_good_cannot_choose(library):
    with pytest.raises(
        LTRError, match=r"eval_set\[0\], by which objective='auto' chooses: every order .* the same map"
    ):
        fitted(library, eval_set=[(VALI.X, np.zeros(len(VALI.y)))])


@everywhere
def test_it_is_deterministic_and_travels(library):
    found, again = fitted(library), fitted(library)
    assert found.report_ == again.report_
    assert np.array_equal(found.predict(TEST.X), again.predict(TEST.X))
    copied = pickle.loads(pickle.dumps(found))
    assert copied.report_ == found.report_
    assert np.array_equal(copied.predict(TEST.X), found.predict(TEST.X))
    twin = clone(found)
    assert twin.get_params() == found.get_params() == ranker(library, "auto", eval_metric="map").get_params()
    assert twin.get_params()["objective"] == "auto"
    assert not hasattr(twin, "report_")


@everywhere
def test_the_report_is_of_the_last_training(library, tmp_path):
    found = fitted(library)
    path = tmp_path / f"model{SUFFIX[library]}"
    found.save_model(path)
    assert np.array_equal(ranker_class(library)().load_model(path).predict(TEST.X), found.predict(TEST.X))
    found.set_params(objective="yetiloss:map").fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    assert not hasattr(found, "report_")


@everywhere
def test_the_last_eval_set_decides_and_its_weights_count(library):
    weight = query_weights(VALI.group)
    found = fitted(
        library, eval_set=[(TRAIN.X, TRAIN.y), (VALI.X, VALI.y)], eval_qid=[TRAIN.qid, VALI.qid],
        eval_sample_weight=[None, weight],
    )  # fmt: skip
    chosen = next(each for each in found.report_.candidates if each.objective == found.report_.chosen)
    assert found.report_.queries == len(VALI.group)
    expected = evaluate("map", found.predict(VALI.X), VALI.y, VALI.group, weight)
    assert chosen.value == pytest.approx(expected)
    assert chosen.value == max(each.value for each in found.report_.candidates)
    assert chosen.value != pytest.approx(evaluate("map", found.predict(VALI.X), VALI.y, VALI.group))


@everywhere
def test_parameters_of_the_user_reach_both_trainings_of_a_native_objective(library):
    given = {CATALOG[library].l2: 3.0, "subsample": 0.7} | ({"subsample_freq": 1} if library == "lightgbm" else {})
    natives = [each for each in fitted(library, metric="ndcg@5", params=given).report_.candidates if each.native]
    for each in natives:
        alone, params = trained_alone(library, each.objective, "ndcg@5", given)
        assert not given.keys() & each.params.keys()
        assert each.params == pytest.approx(params)
        assert each.value == pytest.approx(evaluate("ndcg@5", alone.predict(VALI.X), VALI.y, VALI.group), abs=1e-12)
    assert natives


@everywhere
def test_without_a_metric_it_chooses_by_the_default(library):
    found = fitted(library, metric=None)
    assert found.report_.metric == "ndcg@10"
    assert "ndcg@10" in found.evals_result_["validation_0"]


@everywhere
def test_candidates_that_cannot_be_trained_are_left_out_with_the_reason(library):
    position = np.concatenate([np.arange(size) for size in TRAIN.group])
    clicks = (TRAIN.y > 0).astype(float)
    made = ranker(library, "auto", eval_metric="map")
    made.fit(TRAIN.X, clicks, qid=TRAIN.qid, position=position, **EVAL)
    reasons, names = made.report_.left_out, [each.objective for each in made.report_.candidates]
    assert set(reasons) >= {*natives_for(library, get_metric("map"))}
    assert all("leave propensity= and position= out" in reasons[n] for n in natives_for(library, get_metric("map")))
    assert "yetiloss:map" in names
    assert not reasons.keys() & {*names}
    assert "left out: " in str(made.report_)
    assert str(made.report_).count("\n") == len(reasons) + len(names)
    assert "chosen" in str(made.report_)
    assert [row["objective"] for row in made.report_.as_dicts()] == names


@everywhere
def test_it_goes_on_from_a_model(library):
    start = ranker(library, "yetiloss:map").fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    before = start.predict(TEST.X)
    found = fitted(library, init_model=start)
    assert found.best_iteration_ > start.best_iteration_
    assert np.array_equal(start.predict(TEST.X), before)


@everywhere
def test_errors_name_what_is_missing(library):
    made = ranker(library, "auto", eval_metric="map")
    with pytest.raises(LTRError, match='objective="auto" chooses on an eval_set; pass'):
        made.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    with pytest.raises(LTRError, match='objective="auto" runs several'):
        made.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, callbacks=[print], **EVAL)
    native = {"xgboost": "ndcg@7-", "lightgbm": "average_precision", "catboost": "NDCG:top=7"}[library]
    with pytest.raises(LTRError, match="chooses by a metric of ours; name one before"):
        fitted(library, metric=native)
    with pytest.raises(LTRError, match="labels must be finite"):
        made.fit(TRAIN.X, np.full(len(TRAIN.y), np.nan), qid=TRAIN.qid, **EVAL)
    with pytest.raises(LTRError, match=r"no objective could be trained: .*deep"):
        ranker(library, "auto", reg_lambda="deep").fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **EVAL)
    assert not hasattr(made, "booster_")


def test_every_metric_has_candidates(learned_metric: Metric):
    assert len(ours_for(learned_metric)) >= 4
    objectives = list(ours_for(learned_metric).values())
    assert all(objectives.count(each) == 1 for each in objectives)
    for library in LIBRARIES:
        natives = natives_for(library, learned_metric)
        assert NATIVE[library] in natives
        assert len(set(natives)) == len(natives)


def test_one_query_has_no_standard_error():
    one = VALI.select([0])
    found = fitted("lightgbm", eval_set=[(one.X, one.y)], eval_qid=[one.qid])
    assert all(each.se is None for each in found.report_.candidates)
    assert "nan" not in str(found.report_)


@everywhere
def test_it_chooses_for_the_labels_of_a_goal(library):
    steps = np.quantile(TRAIN.X[:, 1], [0.5, 0.8])
    goals = [np.digitize(part.X[:, 1], steps).astype(float) for part in (TRAIN, VALI)]
    found = fitted(library, metric="ndcg@5[other]", labels={"other": goals[0]}, eval_labels=[{"other": goals[1]}])
    assert [each.objective for each in found.report_.candidates] == list(ours_for(get_metric("ndcg@5[other]")))
    assert not found.report_.left_out
    value = evaluate("ndcg@5", found.predict(VALI.X), goals[1], VALI.group)
    assert max(each.value for each in found.report_.candidates) == pytest.approx(value)
    assert found.objective_.facts.goals == ("other",)
