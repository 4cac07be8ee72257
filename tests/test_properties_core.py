"""Any numbers and any types give finite output or our own exception, never a crash, a hang or NaN."""

import contextlib
import dataclasses
import functools
import itertools
import json
from decimal import Decimal
from fractions import Fraction

import catalog
import numpy as np
import pytest
from catalog import EXAMPLES
from conftest import METRICS, OBJECTIVES
from hypothesis import example, given, reject
from hypothesis import strategies as st
from limits import may_be_negative
from strategies import anything, data_sets, labels_0_to_4

import ltr_objectives as ours
from ltr_objectives import LTRError, registry
from ltr_objectives import report as report_of


@contextlib.contextmanager
def accepted():
    """Draw another example if we refuse this one, so that as many as the profile says are not refused."""
    try:
        yield
    except LTRError:
        reject()


objectives = st.sampled_from([*OBJECTIVES, *(ours.Langevin(objective, shrink=0.1) for objective in OBJECTIVES)])
shares = st.one_of(labels_0_to_4, st.floats(0, 1))


@given(objectives, data_sets(shares), st.integers(), st.sampled_from([None, -1, 1, 2, 3, 0, "two", 1.5]))
def test_gradient_hessian(objective, data, iteration, n_threads):
    with accepted():
        grad, hess = objective.gradient_hessian(**data, iteration=iteration, n_threads=n_threads)
        assert grad.shape == hess.shape == (len(data["labels"]),)
        assert grad.dtype == hess.dtype == np.float64
        assert np.isfinite(grad).all()
        assert np.isfinite(hess).all()
        assert may_be_negative(objective) or (hess >= 0).all()


@given(objectives, data_sets(shares))
def test_report(objective, data):
    with accepted():
        report = report_of(objective, **data)
        assert report.useful + sum(report.useless.values()) == report.queries
        assert json.dumps(report.as_dict(), allow_nan=False)
        assert "nan" not in str(report)


@pytest.mark.filterwarnings("ignore:.*every order of the documents has the same")  # drawn labels may be all relevant
@given(
    st.sampled_from(METRICS),
    data_sets(shares),
    st.booleans(),
    st.sampled_from([None, *sorted({c for m in METRICS for c in m.conventions}), "lucene"]),
)
def test_evaluate(metric, data, per_query, convention):
    with accepted():
        value = ours.evaluate(metric, **data, per_query=per_query, convention=convention)
        if per_query and (metric.with_convention(convention) if convention else metric).empty == "skip":
            value = value[~np.isnan(value)]  # as it says
        assert np.isfinite(value).all()
        if metric.maximum is not None:
            assert np.all(value <= metric.maximum + 1e-9)


@given(data_sets())
@example({"scores": np.zeros(2), "labels": np.array([], object), "group": [1, 1]})
def test_queries(data):
    with accepted():
        queries = ours.Queries(**{name: values for name, values in data.items() if name != "scores"})
        assert queries.ptr[0] == 0
        assert queries.ptr[-1] == queries.rows == len(queries.labels) > 0
        assert (np.diff(queries.ptr) >= 1).all()
        assert np.isfinite(queries.labels).all()
        weight = queries.weight_by_row
        if weight is not None:
            assert weight.shape == (queries.rows,)
            assert np.isfinite(weight).all()
            assert (weight >= 0).all()
            assert np.isfinite(queries.weight_by_query).all()
        s = queries.check_scores(data["scores"]).values
        assert s.shape == (queries.rows,)
        assert np.isfinite(s).all()


notation = st.from_regex(r"[a-z]{2,7}(@[0-9]{1,3})?(:[a-z]{2,7}(@[0-9]{1,3})?)?", fullmatch=True)
known = st.sampled_from(
    [*registry.objective_names(), *registry.metric_names(), "ndcg@0", "yetiloss:", ":map", "map@", "ndcg@1@2"]
)


@given(st.one_of(st.text(max_size=20), notation, known, anything, st.tuples(known, known).map(":".join)))
def test_names(name):
    for get in (ours.get_metric, ours.get_objective):
        with contextlib.suppress(LTRError):
            get(name)


# one argument of a wrong type

WRONG = [
    None, "a", "", b"x", -1, 3.5, float("nan"), 1j, object(), [], {}, (), {1}, [None], [[1]], True, LTRError, len,
    np.array([1, 2]), np.array(["a"]), np.ma.masked_array([1.0, 2.0], mask=True), np.array(["2020"], "datetime64[D]"),
    np.timedelta64(2, "D"), 12.0, Fraction(1, 2), 10**400,
]  # fmt: skip
LISTS = {"scores": [1.0, 2.0, 0.0], "labels": [1, 0, 2], "group": [3]}
GOALS = {"relevance": LISTS["labels"], "revenue": [0, 1, 0]}
OPTIONAL = dict.fromkeys(("weight", "qid", "propensity", "n_threads"))
OBJECTIVE, METRIC = ours.get_objective("yetiloss:map@2"), ours.get_metric("ndcg@2")
TWO = {"labels": [1, 0, 2, 1], "qid": [0, 0, 1, 1]}
FUNCTIONS = {
    "evaluate": (ours.evaluate, {"metric": "ndcg", **LISTS, "weight": None, "qid": None, "convention": None,
                                 "n_threads": None, "unjudged": "refuse"}),
    "evaluate_exposure": (ours.evaluate_exposure, {**LISTS, "qid": None, "patience": 0.5, "policy": "sorted",
                                                   "samples": 9, "seed": 0, "owner": ["a", "b", "a"]}),
    "evaluate_items": (ours.evaluate_items, {"scores": LISTS["scores"], "item": [1, 2, 3], "group": [3], "qid": None,
                                             "k": 2, "catalogue": 9, "labels": LISTS["labels"],
                                             "expected": [True, False, False]}),
    "compare_scores": (ours.compare_scores, {"metric": "ndcg", "scores_a": [1.0, 2, 0, 1], "scores_b": [1.0, 0, 0, 1],
                                             **TWO, "weight": None, "level": 0.9, "user": None, "seed": 0}),
    "to_run": (ours.to_run, {"scores": [1.0, 2, 0, 1], "item": ["a", "b", "a", "b"], "qid": TWO["qid"]}),
    "to_qrels": (ours.to_qrels, {"labels": TWO["labels"], "item": ["a", "b", "a", "b"], "qid": TWO["qid"]}),
    "gradient_hessian": (OBJECTIVE.gradient_hessian, {**LISTS, **OPTIONAL, "iteration": 0}),
    "report": (functools.partial(report_of, OBJECTIVE), {**LISTS, **OPTIONAL}),
    "compute": (functools.partial(OBJECTIVE.compute, ours.Queries([1, 0, 2], [3])),
                {"scores": [1.0, 2, 0], "iteration": 0, "n_threads": 1}),
    "per_query": (METRIC.per_query, {**LISTS, "qid": None, "n_threads": None}),
    "with_convention": (METRIC.with_convention, {"library": "lightgbm"}),
    "Queries": (ours.Queries, {"labels": [1, 0, 2], "group": [3], **dict.fromkeys(("qid", "weight", "propensity"))}),
    "get_metric": (ours.get_metric, {"metric": "map", "convention": None}),
    "get_objective": (ours.get_objective, {"objective": "lambdamart"}),
    "objective_for": (ours.objective_for, {"metric": "map"}),
    "check_metric": (ours.check_metric, {"metric": METRIC, "labels": [0, 1]}),
    "check_objective": (ours.check_objective, {"objective": ours.RankNet(), "labels": [0, 1]}),
}  # fmt: skip
OF_EACH_CLASS = [
    *(examples[-1] for examples in EXAMPLES.values()),
    *([m for m in examples if m.label_limit is None or m.label_limit > 1][-1] for examples in catalog.METRICS.values()),
    ours.Subsample("ranknet", queries=0.5),
    ours.UnitHessian("ranknet"),
    ours.Langevin("ranknet", temperature=1, learning_rate=0.1),
    ours.Mixture(["ranknet", "listnet[revenue]"]),
    ours.FairExposure(),
    ours.Preferences([[1, 0]], 3),
]


def computed(thing):
    """Return the value or the gradient of a metric or an objective."""
    labels = GOALS if isinstance(thing, ours.Objective) and thing.facts.goals else LISTS["labels"]
    if not isinstance(thing, ours.Metric):
        return thing.gradient_hessian(LISTS["scores"], labels, LISTS["group"])
    values = thing.per_query(LISTS["scores"], labels, LISTS["group"])
    return values[~np.isnan(values)] if thing.empty == "skip" else values


def numbers(found):
    """Return all numbers in a result of plain containers and arrays."""
    if isinstance(found, dict | list | tuple):
        return [x for each in (found.values() if isinstance(found, dict) else found) for x in numbers(each)]
    return np.ravel(found).tolist() if isinstance(found, np.ndarray | float) else []


def computed_by(cls):
    return lambda **settings: computed(cls(**settings))


FUNCTIONS |= {type(each).__name__: (computed_by(type(each)), each.settings()) for each in OF_EACH_CLASS}


def test_every_public_callable_is_tried():
    skipped = {"LTRError", "LTRWarning", "Metric", "Objective", "Report", "metric_names", "objective_names"}
    assert {name for name in ours.__all__ if callable(getattr(ours, name))} - skipped <= FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_type_gives_finite_numbers_or_our_error(name):
    call, arguments = FUNCTIONS[name]
    assert np.isfinite(numbers(call(**arguments))).all()
    for argument, value in itertools.product(arguments, WRONG):
        if argument == "metric" and value is len and name in ("evaluate", "compare_scores"):
            continue  # they call it, and the errors of a function keep their traceback
        with contextlib.suppress(LTRError):
            assert np.isfinite(numbers(call(**{**arguments, argument: value}))).all(), (argument, value)


NUMBERS = (
    2, 3.0, 0.5, np.int8(2), np.uint64(2), np.float16(0.5), np.float16(2), np.float32(0.5),
    np.longdouble(2), np.longdouble("1e4000"), Fraction(1, 2), Fraction(3), Decimal("0.5"), 2**63, 10**300, 10**400,
    -(10**400), 10**5000, 1e300, 5e-324,
)  # fmt: skip


def outcome(thing):
    """Return the error, or the bytes of the value or of the gradient, which are finite."""
    try:
        found = np.asarray(computed(thing))
    except LTRError as error:
        return str(error)
    assert np.isfinite(found).all()
    return found.tobytes()


@pytest.mark.parametrize("example", OF_EACH_CLASS, ids=lambda example: type(example).__name__)
def test_numbers_of_every_type_are_refused_by_name_or_count_as_they_are(example):
    for argument, value in itertools.product(example.settings(), NUMBERS):
        try:
            made = dataclasses.replace(example, **{argument: value})
        except LTRError as error:
            message = str(error)
            assert argument in message or "goal" in argument or "has no cutoff" in message
            assert len(message) < 1000
        else:
            plain = int(value) if value == int(value) else float(value)
            same = dataclasses.replace(example, **{argument: plain})
            assert outcome(made) == outcome(same), (argument, value)


def test_iterations_are_counted_modulo_2_to_the_64():
    expected = OBJECTIVE.gradient_hessian(**LISTS, iteration=2**64 - 1)[0].tobytes()
    for same in (-1, np.int64(-1), np.uint64(2**64 - 1)):
        assert OBJECTIVE.gradient_hessian(**LISTS, iteration=same)[0].tobytes() == expected
