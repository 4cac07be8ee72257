"""Names of objectives and metrics that the estimators read, ours and those of the libraries."""

import itertools

import pytest
from rankers import EVAL, NATIVE, TRAIN, VALI, everywhere, fit, ranker

from ltr_objectives import LTRError, LTRWarning, Metric, evaluate, get_metric, objective_for, registry
from ltr_objectives.adapters._names import read_metrics
from ltr_objectives.libraries import LIBRARIES as TABLES
from ltr_objectives.objectives.around import innermost

QUERIES = {"X": TRAIN.X, "y": TRAIN.y, "qid": TRAIN.qid}


def test_cutoffs_of_lightgbm_s_metrics():
    metrics = {"eval_metric": ["ndcg@5", "mean_average_precision"]}
    for objective, params, names in (("yetiloss:map", metrics, ["map@3", "ndcg@5"]), ("lambdarank", {}, ["ndcg@3"])):
        found = fit("lightgbm", objective, EVAL, eval_at=[3], **params)
        assert list(found.evals_result_["validation_0"]) == names


def test_the_metric_under_lightgbm_s_names():
    for name in TABLES["lightgbm"].names("eval_metric"):
        fitted = fit("lightgbm", NATIVE["lightgbm"], EVAL, **{name: "map"})
        assert list(fitted.evals_result_["validation_0"]) == ["map"]
        assert fitted.score(**QUERIES) == evaluate("map", fitted.predict(TRAIN.X), TRAIN.y, qid=TRAIN.qid)


def test_score_warns_of_another_metric_in_fit():
    """The fit of LightGBM alone has the argument."""

    def score(metric, **params):
        return fit("lightgbm", None, {**EVAL, "eval_metric": metric}, **params).score(**QUERIES)

    with pytest.warns(LTRWarning, match=r"the mean ndcg@10, not map\(threshold=2.5\), .* eval_metric= of the constr"):
        score(["map(threshold=2.5)", "ndcg@10"])
    for metric, params in (
        ("ndcg@10", {}),
        ("map", {"eval_metric": "mrr"}),
        ("average_precision", {}),
    ):  # warnings are errors
        score(metric, **params)


@everywhere
@pytest.mark.parametrize("labels", [lambda y: y - 1.5, lambda y: 500.0 * y])
def test_labels_that_are_no_grades_have_a_metric(library, labels):
    valid = {"eval_set": [(VALI.X, labels(VALI.y))], "eval_qid": [VALI.qid]}
    for given in ({}, valid):
        fitted = ranker(library, "queryrmse").fit(TRAIN.X, labels(TRAIN.y), qid=TRAIN.qid, **given)
        assert [*fitted.evals_result_.get("validation_0", {})] == (["spearman"] if given else [])


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
    for text in map("".join, itertools.product({"ndcg", "map", "auc", "mrr", *KNOWN[library].split()}, ENDS)):
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
