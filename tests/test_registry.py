"""Objectives by name, with parameters."""

import inspect
import itertools
import pickle
import re

import pytest
from catalog import LEARNED, METRICS

import ltr_objectives
from ltr_objectives import DCG, GAP, MAP, NDCG, LTRError, Mixture, Objective, YetiLoss, evaluate
from ltr_objectives.registry import (
    ELSEWHERE,
    WRAPPERS,
    get_metric,
    get_metrics,
    get_objective,
    metric_class,
    metrics,
    objective_for,
    objectives,
    options_of,
)


def test_str_is_the_text_of_an_objective(every_objective):
    text = str(every_objective)
    if every_objective.name == "mixture" and text == repr(every_objective):
        assert every_objective.draw or not every_objective.normalize
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
        ("lambdamart:map(threshold=1, ties=average),sigma=2", "write ';' between the parameters"),
        (
            "lambdamart:map;threshold=2",
            r"there are metric.*; metrics have it, as in 'lambdamart:map\(threshold=\.\.\.\)'",
        ),
        ("gap(threshold=2)", r"gap has no parameter 'threshold'.*; metrics have it, as in 'map\(threshold=\.\.\.\)'"),
        ("lambdamart:sigma=zero", "sigma='zero'"),
        ("lambdamart:sigma=-1", "sigma=-1"),
        ("map(treshold=3)", "map has no parameter 'treshold'.*; did you mean 'threshold'?"),
        ("map(3)", "'3' in 'map\\(3\\)' is not of the form parameter=value, such as"),
        ("map(threshold=1, threshold=2)", "threshold is given twice"),
        ("map(threshold=a)", "threshold='a' must be a finite number"),
        ("ndcg(k=5)", "ndcg has no parameter 'k'"),
        ("map;threshold=2.5", r"brackets, before the cutoff, as in 'map\(threshold=2.5\)@10'$"),
        ("xyz_w", rf"; there are {', '.join(metrics())}$"),
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
        (lambda: get_metric("ndgc@10"), "'ndcg@10'"),
        (lambda: get_metric("mpa(threshold=2.5)"), r"'map\(threshold=2.5\)'"),
        (lambda: get_metric("ndgc@10(threshold=2)"), r"'ndcg\(threshold=2\)@10'"),
        (lambda: get_metric("mean_average_precision"), "'map'"),
        (lambda: evaluate("rsme", [1], [1], [1]), "'rmse'"),
        (lambda: get_objective("yetiloss:P@5"), "'precision@5'"),
        (lambda: get_objective("lambdamart:ndcg;sgima=1"), "'sigma'"),
        (lambda: get_objective("yetiloss:ndcg;noise=logistik"), "'logistic'"),
    ],
)
def test_the_error_names_the_nearest_name(make, meant):
    with pytest.raises(LTRError, match=rf"; did you mean {meant}\?$"):
        make()
    with pytest.raises(LTRError, match=r"there are [a-z, ]*$"):
        get_metric("xyzw")
    with pytest.raises(LTRError, match=r"; ndcg is a metric: write 'yetiloss:ndcg@10'$"):
        get_objective("ndcg@10")


FORMS = "{}5", "{}-5", "{}:top=5", "{}_cut_5", "{} at 5", "{}@ 5"


@pytest.mark.parametrize(("name", "meant"), [*((name, name) for name in metrics()), *ELSEWHERE.items()])
def test_the_error_for_a_metric_written_as_elsewhere_names_it(name, meant):
    for form, goal, written in itertools.product(FORMS, ("", "[Revenue2]"), (name, name.upper())):
        expected = f"{meant}{'' if metric_class(meant).cutoff == 'none' else '@5'}{goal}"
        assert str(get_metric(expected)) == expected
        with pytest.raises(LTRError, match=rf"; did you mean {re.escape(repr(expected))}\?$"):
            get_metric(form.format(written) + goal)


@pytest.mark.parametrize("name", metrics())
def test_a_cutoff_that_is_no_whole_number_is_named(name):
    options = options_of(metric_class(name))
    for settings, cutoff in itertools.product(("", f"({options[0]}=2)"), ("", "-3", "2.5", "1e3")):
        with pytest.raises(LTRError) as caught:
            get_metric(f"{name.upper()}{settings}@{cutoff}")
        *_, said, meant = str(caught.value).rpartition("; a cutoff is a whole number of at least 1")
        assert said, caught.value
        threshold = cutoff == "2.5" and not settings and "threshold" in options
        assert meant == (f"; a threshold of labels is written '{name}(threshold=2.5)'" if threshold else "")


@pytest.mark.parametrize("call", [get_metric, get_objective, objective_for, evaluate])
def test_an_option_as_a_keyword_is_told_where_it_goes(call):
    with pytest.raises(LTRError, match=rf"^{call.__name__} knows no .*'threshold'; .*'map\(threshold=\.\.\.\)'$"):
        call("map", threshold=2.5)


def test_nothing_is_guessed_from_what_no_metric_is_near_to():
    for text in ("ndcg@0", "ndcg@1.5", "ndcg@10,map", "10", "", "@", "yetiloss:map", "xyzw10"):
        with pytest.raises(LTRError) as caught:
            get_metric(text)
        assert "did you mean" not in str(caught.value)


def test_there_is_something_to_learn_for_every_metric_in_lists_shorter_than_its_cutoff():
    for name in LEARNED:
        metric = name if metric_class(name).cutoff == "none" else f"{name}@100"
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


AROUND = [getattr(ltr_objectives, name) for name in ltr_objectives.__all__ if name.lower() in WRAPPERS]


@pytest.mark.parametrize("thing", AROUND)
def test_a_wrapper_is_told_how_it_is_written(thing):
    name = thing.__name__.lower()
    for text in (name, f"{name}:map", f"{thing.__name__}(ranknet)", f"ranknet + .5*{name}:map"):
        with pytest.raises(LTRError, match=rf"{name} is not written as text, but as an object: (.*)$") as caught:
            get_objective(text)
    written = str(caught.value).rpartition("object: ")[2]
    made = [eval(text, {thing.__name__: thing}) for text in re.findall(rf"{thing.__name__}\(.*\)$", written)]
    assert [type(one) for one in made] == [thing if inspect.isclass(thing) else Mixture]
    assert [get_objective(text) for text in re.findall(r"a sum, '(.*?)'", written)] in ([], made)


def test_every_wrapper_is_known():
    public = [getattr(ltr_objectives, name) for name in ltr_objectives.__all__]
    classes = [thing for thing in public if inspect.isclass(thing) and issubclass(thing, Objective)]
    names = {thing.name for thing in classes if thing is not Objective}
    assert {thing.__name__.lower() for thing in AROUND} == set(WRAPPERS) >= names - set(objectives())


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


@pytest.mark.parametrize("name", metrics())
def test_options_after_the_cutoff_are_put_before_it(name):
    meant = f"{name}(ties=worst){'' if metric_class(name).cutoff == 'none' else '@10'}[a]"
    assert get_metric(meant).ties == "worst"
    for written in (f"{name}@10(ties=worst)", f"{name.upper()}@10 (ties=worst)"):
        with pytest.raises(LTRError, match=rf"; did you mean {re.escape(repr(meant))}\?$"):
            get_metric(f"{written}[a]")


def test_options_that_only_change_the_value_do_not_change_what_is_trained():
    assert objective_for("map(ties=worst, empty=skip)") == objective_for("map")
    assert objective_for("map(threshold=3)@10") == YetiLoss(MAP(10, threshold=3))
    on_goal = objective_for("map(threshold=3)[stars]")
    assert (str(on_goal.metric), on_goal.metric.threshold) == ("map(threshold=3)[stars]", 3)
