"""Objectives by name, with parameters."""

import itertools
import pickle

import pytest
from catalog import LEARNED, METRICS

from ltr_objectives import DCG, GAP, MAP, NDCG, LTRError, Metric, YetiLoss, evaluate
from ltr_objectives.metrics.base import get_metric, get_metrics
from ltr_objectives.objectives.base import get_objective
from ltr_objectives.registry import metrics, objective_for


def test_str_is_the_text_of_an_objective(every_objective):
    text = str(every_objective)
    if every_objective.name == "mixture" and text == repr(every_objective):
        assert not every_objective.normalize
    else:
        assert get_objective(text) == every_objective


def test_every_parameter_can_be_written_in_the_string(any_objective):
    settings = any_objective.settings()
    settings |= {"metric": "ndcg@3"} if "metric" in settings else {}
    if any_objective.name != "mixture":
        written = "; ".join(f"{key} = {value}" for key, value in settings.items())
        assert get_objective(f"{any_objective.name}:{written}") == type(any_objective)(**settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lambdamart:ndcg;sgima=1", "lambdamart has no parameter 'sgima'; there are metric, sigma"),
        ("lambdamart:ndcg;sigma", "'sigma' in 'lambdamart:ndcg;sigma' is not of the form parameter=value"),
        ("lambdamart:sigma=", "is not of the form parameter=value"),
        ("lambdamart:ndcg;;sigma=1", "is not of the form parameter=value"),
        ("lambdamart:map;metric=mrr", "metric is given twice"),
        ("lambdamart:sigma=zero", "sigma='zero'"),
        ("lambdamart:sigma=-1", "sigma=-1"),
        ("map(treshold=3)", "map has no parameter 'treshold'.*; did you mean 'threshold'?"),
        ("map(3)", "'3' in 'map\\(3\\)' is not of the form parameter=value$"),
        ("map(threshold=1, threshold=2)", "threshold is given twice"),
        ("map(threshold=a)", "threshold='a' must be a finite number"),
        ("ndcg(k=5)", "ndcg has no parameter 'k'"),
        ("lambdamart:sigma=1,truncation=2", "sigma='1,truncation=2'"),
        ("lambdamart:map,sigma=2", "has no parameter 'map,sigma'"),
        ("map;threshold=2.5", "is not of the form name, name@k or name\\(parameter=value\\)@k"),
        ("map(threshold=3", "is not of the form name, name@k or name\\(parameter=value\\)@k"),
    ],
)
def test_mistakes_in_the_string_are_named(text, message):
    with pytest.raises(LTRError, match=message):
        (get_objective if text.startswith("lambdamart") else get_metric)(text)


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: get_objective("lambdamrt"), "'lambdamart'"),
        (lambda: get_metric("ndgc@10"), "'ndcg'"),
        (lambda: get_metric("mpa(threshold=2.5)"), "'map'"),
        (lambda: evaluate("rsme", [1], [1], [1]), "'rmse'"),
        (lambda: get_objective("lambdamart:ndcg;sgima=1"), "'sigma'"),
        (lambda: get_objective("yetiloss:ndcg;noise=logistik"), "'logistic'"),
    ],
)
def test_the_error_names_the_nearest_name(make, meant):
    with pytest.raises(LTRError, match=rf"; did you mean {meant}\?$"):
        make()
    with pytest.raises(LTRError, match=r"there are [a-z, ]*$"):
        get_metric("xyzw")


@pytest.mark.parametrize("name", metrics())
def test_a_cutoff_is_a_whole_number(name):
    for text in (
        f"{name}@",
        f"{name}@-3",
        f"{name}@2.5",
        f"{name}@1e3",
        f"{name}(ties=worst)@2.5",
        f"{name}@5(ties=worst)",
    ):
        with pytest.raises(LTRError, match="is not of the form name, name@k or"):
            get_metric(text)


def test_there_is_something_to_learn_for_every_metric_in_lists_shorter_than_its_cutoff():
    for name in LEARNED:
        metric = name if Metric.named[name].cutoff == "none" else f"{name}@100"
        grad, hess = objective_for(metric).gradient_hessian([2.0, 1.0, 0.0], [0, 1, 0], [3])
        assert (grad != 0).any(), name
        assert (hess > 0).any(), name


MANY = 200_000
LONG = (
    "ranknet" + "+1" * MANY, "ranknet" + "+1e" * MANY, "ranknet" + "+1ee" * MANY, "ranknet+" + "1" * MANY + "*listnet",
    "ranknet+" + " " * MANY, "ranknet" + "[a]" * MANY, "lambdamart:" + "a" * MANY + "!" + "1" * 20,
    *(f"ranknet:sigma={text}" for text in ("1" + "+1" * MANY, "(" * MANY, "-" * MANY + "1", "[1," * MANY, "9" * MANY)),
)  # fmt: skip


def test_text_is_read_once_however_long():
    """Text that is read anew from each of its signs would take an hour, and the test would end the run."""
    for text, read in itertools.product(LONG, (get_objective, get_metric)):
        with pytest.raises(LTRError) as caught:
            read(text)
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("map(threshold=3)@10", MAP(k=10, threshold=3)),
        ("MAP( threshold = 3 , normalizer = relevant )", MAP(threshold=3, normalizer="relevant")),
        ("ndcg(gain_type=linear)", NDCG(gain_type="linear")),
        ("dcg(gain_type=[0, 1, 3], discount_type=(1, 0.5))@2", DCG(2, gain_type=(0, 1, 3), discount_type=(1, 0.5))),
        ("gap(weights=(1, 2))[stars]", GAP(weights=(1, 2), goal="stars")),
        ("ndcg()@5", NDCG(5)),
        ("map(empty=skip)", MAP(empty="skip")),
    ],
)
def test_metrics_with_settings(text, metric):
    found = get_metric(text)
    assert found == metric
    assert get_metric(str(found)) == metric
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
    if metric.goal is None:
        learnt = get_objective(f"yetiloss:{text};permutations=2 + .3*listnet")
        assert learnt.parts[0] == YetiLoss(metric, permutations=2)
        assert get_objective(f"yetiloss:permutations=2;metric={text}") == YetiLoss(metric, permutations=2)


def test_metrics_of_one_name_and_other_settings_differ_in_what_they_are_called():
    found = get_metrics(["map(threshold=1)", "map(threshold=3)@5", "map"])
    assert [str(metric) for metric in found] == ["map(threshold=1)", "map(threshold=3)@5", "map"]
    assert str(get_metric("map(threshold=1)", "trec_eval")) == "map(threshold=1)"
    assert get_metric("map(threshold=1)", "trec_eval").normalizer == "relevant"


def test_metrics_of_other_options_have_other_names_which_are_their_text():
    for examples in METRICS.values():
        named = {str(metric): metric for metric in examples}
        assert set(named.values()) == set(examples)
        assert {text: get_metric(text) for text in named} == named
        assert len(get_metrics(named.values())) == len(named)
    for metric in (get_metric("map", "catboost"), MAP().with_convention("catboost")):
        assert str(metric) == "map"  # the convention applies to all metrics of a result
    with pytest.raises(LTRError, match="two metrics are both called map, and results are keyed by name; leave one out"):
        get_metrics(["map", MAP()])


def test_options_that_only_change_the_value_do_not_change_what_is_trained():
    assert objective_for("map(ties=worst, empty=skip)") == objective_for("map")
    assert objective_for("map(threshold=3)@10") == YetiLoss(MAP(10, threshold=3))
    on_goal = objective_for("map(threshold=3)[stars]")
    assert (str(on_goal.metric), on_goal.metric.threshold) == ("map(threshold=3)[stars]", 3)
