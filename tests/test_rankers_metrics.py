"""Records and scores of the rankers: several metrics, conventions, the best round, all rounds."""

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, SUFFIX, fold, query_weights, ranker

from ltr_objectives import MAP, LTRError, Metric, evaluate

for name in LIBRARIES:
    pytest.importorskip(name)
everywhere = pytest.mark.parametrize("library", LIBRARIES)
TRAIN, VALI, TEST = fold(seed=3)
DATA = {"qid": TRAIN.qid, "eval_set": [(VALI.X, VALI.y), (TEST.X, TEST.y)], "eval_qid": [VALI.qid, TEST.qid]}
CONVENTIONS = sorted({convention for c in Metric.named.values() for convention in c.conventions})


@everywhere
@pytest.mark.parametrize("objective", ["yetiloss:map", "native"])
def test_several_metrics_of_ours_and_of_the_library(library, objective):
    objective = NATIVE[library] if objective == "native" else objective
    theirs = {"xgboost": "ndcg@7-", "lightgbm": "average_precision", "catboost": "MAP:top=7"}[library]
    weight = [query_weights(VALI.group), query_weights(TEST.group, 1)]
    names = ["map", theirs, "mrr@5", "dcg", "err"]
    fitted = ranker(library, objective, eval_metric=names).fit(TRAIN.X, TRAIN.y, **DATA, eval_sample_weight=weight)
    for data, record, w in zip((VALI, TEST), fitted.evals_result_.values(), weight, strict=True):
        assert record.keys() >= {*names}  # CatBoost adds its own losses
        assert {len(values) for values in record.values()} == {8}
        expected = evaluate(["map", "mrr@5", "dcg", "err"], fitted.predict(data.X), data.y, data.group, w)
        assert {m: record[m][-1] for m in expected} == pytest.approx(expected, abs=2e-6)
    alone = ranker(library, objective, eval_metric=["err"]).fit(TRAIN.X, TRAIN.y, **DATA, eval_sample_weight=weight)
    for name in fitted.evals_result_:
        assert alone.evals_result_[name]["err"] == fitted.evals_result_[name]["err"]
    assert np.array_equal(alone.predict(TEST.X), fitted.predict(TEST.X))


@everywhere
def test_several_metrics_with_early_stopping(library):
    fitted = ranker(library, eval_metric=["map", "err"], n_estimators=60, learning_rate=1.0)
    fitted.fit(TRAIN.X, TRAIN.y, **DATA, early_stopping_rounds=4)
    kept = fitted.best_iteration_
    assert kept < 56
    for name, record in fitted.evals_result_.items():
        assert {m: len(values) for m, values in record.items()} == {"map": kept + 4, "err": kept + 4}
        assert fitted.best_score_[name] == {m: values[kept - 1] for m, values in record.items()}
    assert max(fitted.evals_result_["validation_1"]["map"]) == fitted.best_score_["validation_1"]["map"]


def test_catboost_s_own_metric_may_come_first_where_nothing_stops():
    fitted = ranker("catboost", eval_metric=["MAP:top=7", "map", "err"]).fit(TRAIN.X, TRAIN.y, **DATA)
    assert sorted(fitted.evals_result_["validation_1"]) == ["MAP:top=7", "err", "map"]
    fitted = ranker("catboost", eval_metric=["map", "err"], metric_period=3).fit(TRAIN.X, TRAIN.y, **DATA)
    assert {m: len(v) for m, v in fitted.evals_result_["validation_0"].items()} == {"map": 4, "err": 4}
    assert fitted.best_score_ == {}


@everywhere
def test_without_early_stopping_all_rounds_are_kept(library):
    fitted = ranker(library, eval_metric="map", n_estimators=30, learning_rate=1.0).fit(TRAIN.X, TRAIN.y, **DATA)
    values = fitted.evals_result_["validation_1"]["map"]
    assert np.argmax(values) < 29, "else this says nothing"
    assert fitted.best_iteration_ == len(values) == 30
    assert fitted.best_score_["validation_1"]["map"] == values[-1]
    assert fitted.score(TEST.X, TEST.y, qid=TEST.qid) == pytest.approx(values[-1], abs=2e-6)


@pytest.mark.parametrize("given", [{"use_best_model": True}, {"od_type": "Iter", "od_wait": 50}])
def test_catboost_keeps_the_best_rounds_where_that_is_asked_for(given):
    fitted = ranker("catboost", eval_metric="map", n_estimators=30, learning_rate=1.0, **given)
    values = fitted.fit(TRAIN.X, TRAIN.y, **DATA).evals_result_["validation_1"]["map"]
    assert fitted.best_iteration_ == np.argmax(values) + 1 < 30


@everywhere
def test_the_best_score_is_of_the_new_rounds(library, tmp_path):
    first = ranker(library, eval_metric="map").fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    assert (first.evals_result_, first.best_score_) == ({}, {})
    second = ranker(library, eval_metric="map", n_estimators=3).fit(TRAIN.X, TRAIN.y, **DATA, init_model=first)
    worth = second.score(VALI.X, VALI.y, qid=VALI.qid)
    assert second.best_score_["validation_0"]["map"] == pytest.approx(worth, abs=2e-6)
    second.save_model(tmp_path / f"model{SUFFIX[library]}")
    second.load_model(tmp_path / f"model{SUFFIX[library]}")
    assert not hasattr(second, "best_score_")
    assert not hasattr(second, "evals_result_")


@everywhere
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_conventions_hold_in_records_and_scores(library, convention):
    vali = VALI.select(np.arange(len(VALI.group)))
    y = np.where(vali.qid == vali.qid[0], 0, vali.y)  # a query without relevant documents
    data = {"eval_set": [(vali.X, y)], "eval_qid": [vali.qid]}
    for metric in ("ndcg@5", "map@3", "spearman", "kendall"):
        known = convention in Metric.named[metric.partition("@")[0]].conventions
        by = ranker(library, eval_metric=metric, convention=convention)
        assert by.get_params()["convention"] == convention
        if not known:
            with pytest.raises(LTRError, match=f"has no convention '{convention}'"):
                by.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **data)
            continue
        by.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **data)
        expected = evaluate(metric, by.predict(vali.X), y, vali.group, convention=convention)
        assert by.evals_result_["validation_0"][metric][-1] == pytest.approx(expected, abs=2e-6)
        assert by.score(vali.X, y, qid=vali.qid) == pytest.approx(expected)
        plain = by.set_params(convention=None).score(vali.X, y, qid=vali.qid)
        assert plain == evaluate(metric, by.predict(vali.X), y, vali.group)
        if convention in ("lightgbm", "xgboost"):  # an empty query counts as 1 there
            assert plain < expected - 0.05


@everywhere
def test_options_in_the_text_of_a_metric(library):
    names = ["map(threshold=3)@5", "map", "ndcg(gain_type=linear)"]
    fitted = ranker(library, eval_metric=names).fit(TRAIN.X, TRAIN.y, **DATA)
    assert fitted.evals_result_["validation_0"].keys() >= {*names}
    expected = evaluate(MAP(5, threshold=3), fitted.predict(TEST.X), TEST.y, TEST.group)
    assert fitted.score(TEST.X, TEST.y, group=TEST.group) == pytest.approx(expected)
    assert fitted.best_score_["validation_1"][names[0]] == pytest.approx(expected, abs=2e-6)
