"""Objectives and metrics as text, with parameters, sums and goals; and the mistakes in it."""

import itertools
import pickle

import numpy as np
import pytest
from catalog import METRICS
from own_classes import Right

from ltr_objectives import (
    DCG,
    GAP,
    MAP,
    NDCG,
    LTRError,
    Mixture,
    Objective,
    Queries,
    YetiLoss,
    evaluate,
    get_metric,
    get_objective,
    objective_for,
    objective_names,
)
from ltr_objectives.metrics.binary import Binary
from ltr_objectives.metrics.sums import WeightedSum
from ltr_objectives.metrics.text import get_metrics


@pytest.mark.parametrize("name", objective_names())
def test_strings_name_objectives(name):
    cls = Objective.named[name]
    assert get_objective(name) == cls()
    if "metric" in cls.parameters():
        assert get_objective(f"{name}:map@5") == cls(metric="map@5")


MANY = 20_000
LONG = (
    "ranknet" + "+1" * MANY, "ranknet" + "+1e" * MANY, "ranknet" + "+1ee" * MANY, "ranknet+" + "1" * MANY + "*listnet",
    "ranknet+" + " " * MANY, "ranknet" + "[a]" * MANY, "lambdamart:" + "a" * MANY + "!" + "1" * 20,
    *(f"ranknet:sigma={text}" for text in ("1" + "+1" * MANY, "(" * MANY, "-" * MANY + "1", "[1," * MANY, "9" * MANY)),
)  # fmt: skip


def test_text_is_read_once_however_long():
    """Text that is read anew from each of its signs would take minutes."""
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
        (" NDCG@10[Revenue] ", NDCG(k=10, goal="Revenue")),
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
        assert get_objective(f"yetiloss: permutations = 2; metric = {text}") == YetiLoss(metric, permutations=2)


def test_the_name_of_a_metric_is_its_text_with_its_options():
    for examples in METRICS.values():
        named = {str(metric): metric for metric in examples}
        assert set(named.values()) == set(examples)
        assert {text: get_metric(text) for text in named} == named
        assert len(get_metrics(named.values())) == len(named)
    for made, text in ((MAP(threshold=0.0), "map(threshold=0)"), (GAP(weights=(1, 2.5)), "gap(weights=(1,2.5))")):
        assert str(made) == str(get_metric(text)) == text
    for metric in (get_metric("map[stars]", "catboost"), MAP(goal="stars").with_convention("catboost")):
        assert str(metric) == "map[stars]"  # the convention applies to all metrics of a result


def test_options_that_only_change_the_value_do_not_change_what_is_trained():
    assert objective_for("map(ties=worst, empty=skip)") == objective_for("map")
    assert objective_for("map(threshold=3)@10") == Mixture(["yetiloss:ndcg", YetiLoss(MAP(10, threshold=3))])
    assert objective_for("map(threshold=3)[stars]").labels == ("stars", "stars")


# sums and goals


@pytest.mark.parametrize(
    ("text", "parts", "weights", "labels"),
    [
        ("yetiloss:ndcg@10+.3*yetiloss:mrr", ["yetiloss:ndcg@10", "yetiloss:mrr"], [1, 0.3], [None, None]),
        (" yetiloss:map + 3e-1 * yetiloss:mrr ", ["yetiloss:map", "yetiloss:mrr"], [1, 0.3], [None, None]),
        ("2*yetiloss:map+1e+2*yetiloss:mrr", ["yetiloss:map", "yetiloss:mrr"], [2, 100], [None, None]),
        ("yetiloss+.3*yetiloss[revenue]", ["yetiloss", "yetiloss"], [1, 0.3], [None, "revenue"]),
        (" YetiLoss:map[Umsatz_1] + listnet[b-c] ", ["yetiloss:map", "listnet"], [1, 1], ["Umsatz_1", "b-c"]),
        ("listnet[a]+plrank:gain=[0, 1, 3]", ["listnet", "plrank:gain=[0,1,3]"], [1, 1], ["a", None]),
        ("ordinal:thresholds=[0,1][b]+listnet", ["ordinal:thresholds=[0,1]", "listnet"], [1, 1], ["b", None]),
    ],
)
def test_text_of_sums_and_goals(text, parts, weights, labels):
    expected = Mixture(parts, weights, labels=labels)
    assert get_objective(text) == expected
    assert pickle.loads(pickle.dumps(expected)) == expected
    brackets = [part if goal is None else f"{part}[{goal}]" for part, goal in zip(parts, labels, strict=True)]
    assert Mixture(brackets, weights) == expected


def test_text_of_sums_of_metrics():
    scores, labels = [0.3, 0.1, 0.2, 0.4], {None: [1, 0, 2, 0], "sold": [0, 0, 1, 3]}
    for text, parts, weights in (
        ("ndcg@10 + 0.3*ndcg@10[sold]", ("ndcg@10", "ndcg@10[sold]"), (1, 0.3)),
        (" MAP(threshold=1) + 1e+1 * mrr@2", ("map(threshold=1)", "mrr@2"), (1, 10)),
        ("0.5*ndcg(gain_type=(0,1e+3,2e+3,3e+3))+2*map[sold]+mrr",
         ("ndcg(gain_type=(0,1000,2000,3000))", "map[sold]", "mrr"), (0.5, 2, 1)),
    ):  # fmt: skip
        metric = get_metric(text)
        assert get_metric(str(metric)) == metric == pickle.loads(pickle.dumps(metric))
        for convention in (None, "catboost"):
            expected = sum(
                weight * evaluate(part, scores, labels, [2, 2], convention=convention)
                for part, weight in zip(parts, weights, strict=True)
            )
            assert evaluate(text, scores, labels, [2, 2], convention=convention) == pytest.approx(expected)
        by_query = evaluate(text, scores, labels, [2, 2], per_query=True)
        assert by_query.mean() == pytest.approx(evaluate(metric, scores, labels, [2, 2]))


def test_a_number_with_a_plus_is_not_a_sum():
    assert get_objective("ranknet:sigma=1e+1").sigma == 10.0
    assert get_objective("ranknet:sigma=1e+1+ranknet").parts[0].sigma == 10.0
    assert get_objective("lambdaloss:weights=ndcg2++").weights == "ndcg2++"
    assert len(get_objective("lambdaloss:weights=ndcg2+++lambdaloss:weights=ndcg2++;mu=3+listnet").parts) == 3


def test_the_text_of_one_objective_of_a_goal():
    assert get_objective("yetiloss:map[revenue]") == Mixture(["yetiloss:map"], labels=["revenue"], normalize=False)
    assert str(get_objective("yetiloss:map[revenue]").metric) == "map[revenue]"
    assert str(get_objective("listnet[revenue] + yetiloss:map").metric) == "None"
    assert objective_for("map[revenue]").parts == (objective_for("map"),)


@pytest.mark.parametrize("labels", [[0, 2, 1], [0, 40, 3]])  # none above the threshold, or one that is no grade
def test_ndcg_is_left_out_if_it_cannot_help(labels):
    metric = get_metric("map(threshold=2)[sold]")
    for other in ([0, 3, 1], labels):
        alone = objective_for(metric, Queries({"other": other, "sold": labels}, group=[3]))
        assert alone == get_objective("yetiloss:map(threshold=2)[sold]")
    assert objective_for(metric, Queries({"other": labels, "sold": [0, 3, 1]}, group=[3])) == objective_for(metric)


AMOUNTS = np.array([0, 12.5, 4000, 0, 0, 3, 0.25, 0, 60, 0])
SIZES = [4, 3, 3]
ONLY_RELEVANCE = [m for examples in METRICS.values() for m in examples if isinstance(m, Binary)]
BY_AMOUNT = [*(m for examples in METRICS.values() for m in examples if m.maximum is None), Right(), Right(k=2)]


@pytest.mark.parametrize("metric", ONLY_RELEVANCE, ids=repr)
def test_amounts_change_no_gradient_of_a_metric_that_asks_which_documents_are_relevant(metric):
    relevant = AMOUNTS > 0
    scores, wanted = np.cos(np.arange(10)), metric._with(threshold=0.0)
    gradients = []
    for labels in (AMOUNTS, AMOUNTS / 1000, AMOUNTS * 100 + 0.5 * relevant, np.sqrt(AMOUNTS)):
        queries = Queries(labels, SIZES)
        gradients.append(objective_for(wanted, queries).compute(queries, scores))
        sold = Queries({"other": relevant, "sold": labels}, SIZES)
        mixed = WeightedSum(parts=((1.0, NDCG()), (0.5, wanted._with(goal="sold"))))
        gradients[-1] += objective_for(mixed, sold).compute(sold, scores)
    for found in gradients:
        np.testing.assert_allclose(found, gradients[0], rtol=1e-9, atol=1e-12)


def test_a_threshold_that_parts_no_labels_is_none():
    """Of labels 0 and 1 the metrics of libraries that ask for more than 0.5 are those that ask for more than 0."""
    queries, scores = Queries(AMOUNTS > 0, SIZES), np.cos(np.arange(10))
    for metric in ONLY_RELEVANCE:
        both = (objective_for(metric._with(threshold=t), queries).compute(queries, scores) for t in (0.5, 0.0))
        np.testing.assert_array_equal(*both)


@pytest.mark.parametrize("metric", BY_AMOUNT, ids=repr)
@pytest.mark.parametrize("of", ["alone", "goal", "sum"])
def test_a_query_counts_by_its_amount_if_the_metric_is_not_normalised_by_query(metric, of):
    """The query with fourfold change of the metric has fourfold gradients."""

    class Fourfold(type(metric)):
        def scale(self, queries, gain, discount):
            return super().scale(queries, gain, discount) * np.repeat([1.0, 4.0], [len(queries) - 1, 1])

    labels, scores = np.tile([0.0, 1.0, 2.0, 1.0], 2), np.tile([0.3, 0.1, 0.4, 0.2], 2)
    fourfold = Fourfold(**metric.settings())
    queries = Queries({"other": labels, "sold": labels}, [4, 4])
    asked = fourfold if of == "alone" else fourfold._with(goal="sold")
    if of == "sum":
        asked = WeightedSum(parts=((1.0, fourfold), (0.5, asked)))
    grad, hess = objective_for(asked, queries).without_noise().compute(queries, scores)
    assert grad.any()
    for found in (grad, hess):
        np.testing.assert_allclose(found[4:], 4 * found[:4], rtol=1e-12)


@pytest.mark.parametrize("metric", BY_AMOUNT, ids=repr)
def test_a_metric_without_a_maximum_counts_in_a_sum_as_a_share_of_its_best_value(metric, rng):
    scores, relevance, sold = rng.normal(size=60), rng.integers(0, 4, 60).astype(float), rng.integers(0, 4, 60) * 1.0
    sizes, weight = np.full(6, 10), rng.uniform(0.5, 2, 6)
    mixed = WeightedSum(parts=((1.0, NDCG()), (0.5, metric._with(goal="sold"))))

    def expected(rows, sizes, weight):
        own, best = (evaluate(metric, s, sold[rows], sizes, weight) for s in (scores[rows], metric.gain(sold)[rows]))
        return evaluate("ndcg", scores[rows], relevance[rows], sizes, weight) + 0.5 * own / best

    value = evaluate(mixed, scores, {"relevance": relevance, "sold": sold}, sizes, weight)
    assert value == pytest.approx(expected(slice(None), sizes, weight), rel=1e-12)
    by_query = evaluate(mixed, scores, {"relevance": relevance, "sold": sold}, sizes, weight, per_query=True)
    assert np.average(by_query, weights=weight) == pytest.approx(value, rel=1e-12)
    nobody = np.where(np.arange(60) < 15, np.nan, 0)  # judged the first query, and half of the second
    judged = {"relevance": relevance + nobody, "sold": sold + nobody}
    value = evaluate(mixed, scores, judged, sizes, weight, unjudged="drop")
    assert value == pytest.approx(expected(slice(15, None), np.array([5, 10, 10, 10, 10]), weight[1:]), rel=1e-12)
    nothing = {"relevance": relevance, "sold": np.zeros(60)}
    assert evaluate(mixed, scores, nothing, sizes) == pytest.approx(evaluate("ndcg", scores, relevance, sizes))


def test_the_objective_for_a_sum_is_the_sum_of_those_for_its_parts():
    for text in ("auc + 0.3*map(threshold=3)[sold]", "2*spearman + auc[sold] + rbp", "rprec[sold] + 0.5*auc[sold]"):
        metric = get_metric(text)
        expected: dict[tuple[Objective, str | None], float] = {}
        for weight, part in metric.parts:
            of = objective_for(part._with(goal=None))
            of = of.parts if isinstance(of, Mixture) else (of,)
            expected |= {(each, part.goal): weight / len(of) for each in of}
        found = objective_for(text)
        assert dict(zip(zip(found.parts, found.labels, strict=True), found.weights, strict=True)) == expected
        assert get_objective(str(found)) == found
    assert str(objective_for("ndcg@10 + map(threshold=2)")) == "1.5*yetiloss:ndcg+0.5*yetiloss:map(threshold=2)"
    assert objective_for("ndcg@10 + 0.3*map") == objective_for("ndcg")  # of which there is one
    assert objective_for("ndcg@5[sold] + ndcg@10[sold]") == objective_for("ndcg[sold]")
