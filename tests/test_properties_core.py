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
from catalog import EXAMPLES, may_be_negative
from conftest import METRICS, OBJECTIVES
from hypothesis import event, example, given
from hypothesis import strategies as st
from rankers import LIBRARIES, fold, ranker
from strategies import anything, data_sets, labels_0_to_4

import ltr_objectives as ours
from ltr_objectives import (
    Langevin,
    LTRError,
    Mixture,
    Queries,
    evaluate,
    get_metric,
    get_objective,
    registry,
)

objectives = st.one_of(st.sampled_from(OBJECTIVES), st.sampled_from(OBJECTIVES).map(lambda o: Langevin(o, shrink=0.1)))
shares = st.one_of(labels_0_to_4, st.floats(0, 1))


@given(objectives, data_sets(shares), st.integers(), st.sampled_from([None, -1, 1, 2, 3, 0, "two", 1.5]))
def test_gradient_hessian(objective, data, iteration, n_threads):
    try:
        grad, hess = objective.gradient_hessian(**data, iteration=iteration, n_threads=n_threads)
    except LTRError:
        event("refused")
        return
    assert grad.shape == hess.shape == (len(data["labels"]),)
    assert grad.dtype == hess.dtype == np.float64
    assert np.isfinite(grad).all()
    assert np.isfinite(hess).all()
    assert may_be_negative(objective) or (hess >= 0).all()


@given(objectives, data_sets(shares))
def test_report(objective, data):
    try:
        report = objective.report(**data)
    except LTRError:
        event("refused")
        return
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
    try:
        value = evaluate(metric, **data, per_query=per_query, convention=convention)
    except LTRError:
        event("refused")
        return
    if per_query and (metric if convention is None else metric.with_convention(convention)).empty == "skip":
        value = value[~np.isnan(value)]  # as it says
    assert np.isfinite(value).all()
    if metric.maximum is not None:
        assert np.all(value <= metric.maximum + 1e-9)


@given(data_sets())
@example({"scores": np.zeros(2), "labels": np.array([], object), "group": [1, 1]})
def test_queries(data):
    data = dict(data)
    scores = data.pop("scores")
    try:
        queries = Queries(**data)
    except LTRError:
        event("refused")
        return
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
    try:
        s = queries.check_scores(scores).values
    except LTRError:
        event("refused")
        return
    assert s.shape == (queries.rows,)
    assert np.isfinite(s).all()


small = st.one_of(st.integers(-3, 40), st.floats(-3, 40), anything.filter(lambda x: type(x) is not int))
CLASSES = [cls for cls in dict.fromkeys(map(type, [*OBJECTIVES, *METRICS])) if cls is not Mixture]  # it has no default


@given(st.data(), st.sampled_from(CLASSES), st.one_of(small, st.integers(20, 63).map(lambda bits: 2.0**bits)))
def test_parameters(data, cls, value):
    names = [f.name for f in dataclasses.fields(cls) if f.init]
    try:
        made = cls(**({data.draw(st.sampled_from(names)): value} if names else {}))
        scores, labels, group = [0.3, -1.0, 0.2, 5.0], [0, 1, 0, 1], [3, 1]
        found = (made.gradient_hessian if hasattr(made, "gradient_hessian") else made.per_query)(scores, labels, group)
    except LTRError:
        event("refused")
        return
    assert np.isfinite(found).all() or value == "skip"


notation = st.from_regex(r"[a-z]{2,7}(@[0-9]{1,3})?(:[a-z]{2,7}(@[0-9]{1,3})?)?", fullmatch=True)
known = st.sampled_from(
    [*registry.objectives(), *registry.metrics(), "ndcg@0", "yetiloss:", ":map", "map@", "ndcg@1@2"]
)


@given(st.one_of(st.text(max_size=20), notation, known, anything, st.tuples(known, known).map(":".join)))
@example("ndcg@" + 5000 * "9")
def test_names(name):
    for get in (get_metric, get_objective):
        try:
            made = get(name)
        except LTRError:
            continue
        assert isinstance(str(made), str)


# one argument of a wrong type

WRONG = [
    None, "a", "", b"x", -1, 3.5, float("nan"), 1j, object(), [], {}, (), {1}, [None], [[1]], True, LTRError, len,
    np.array([1, 2]), np.array(["a"]), np.ma.masked_array([1.0, 2.0], mask=True), np.array(["2020"], "datetime64[D]"),
    np.timedelta64(2, "D"), 12.0, Fraction(1, 2), 10**400,
]  # fmt: skip
LISTS = {"scores": [1.0, 2.0, 0.0], "labels": [1, 0, 2], "group": [3]}
GOALS = {"relevance": LISTS["labels"], "revenue": [0, 1, 0]}
OPTIONAL = dict.fromkeys(("weight", "qid", "propensity", "position", "n_threads"))
QUERIES = ours.Queries([1, 0, 2], [3])
OBJECTIVE, METRIC = ours.get_objective("yetiloss:map@2"), ours.get_metric("ndcg@2")
TWO = {"labels": [1, 0, 2, 1], "qid": [0, 0, 1, 1]}
FUNCTIONS = {
    "evaluate": (ours.evaluate, {"metric": "ndcg", **LISTS, "weight": None, "qid": None, "convention": None,
                                 "n_threads": None, "unjudged": "refuse"}),
    "evaluate_exposure": (ours.evaluate_exposure, {**LISTS, "qid": None, "patience": 0.5, "policy": "sorted",
                                                   "samples": 9, "seed": 0, "owner": ["a", "b", "a"]}),
    "evaluate_items": (ours.evaluate_items, {"scores": LISTS["scores"], "item": [1, 2, 3], "group": [3], "qid": None,
                                             "k": 2, "catalogue": 9, "labels": LISTS["labels"]}),
    "compare_scores": (ours.compare_scores, {"metric": "ndcg", "scores_a": [1.0, 2, 0, 1], "scores_b": [1.0, 0, 0, 1],
                                             **TWO, "weight": None, "level": 0.9, "user": None, "seed": 0}),
    "to_run": (ours.to_run, {"scores": [1.0, 2, 0, 1], "item": ["a", "b", "a", "b"], "qid": TWO["qid"]}),
    "to_qrels": (ours.to_qrels, {"labels": TWO["labels"], "item": ["a", "b", "a", "b"], "qid": TWO["qid"]}),
    "gradient_hessian": (OBJECTIVE.gradient_hessian, {**LISTS, **OPTIONAL, "iteration": 0}),
    "report": (OBJECTIVE.report, {**LISTS, **OPTIONAL}),
    "compute": (functools.partial(OBJECTIVE.compute, QUERIES), {"scores": [1.0, 2, 0], "iteration": 0, "n_threads": 1}),
    "per_query": (METRIC.per_query, {**LISTS, "qid": None, "n_threads": None}),
    "swap_changes": (METRIC.swap_changes, {"labels": [1, 0, 2]}),
    "move_changes": (METRIC.move_changes, {"labels": [1, 0, 2]}),
    "with_convention": (METRIC.with_convention, {"library": "lightgbm"}),
    "Queries": (ours.Queries, {"labels": [1, 0, 2], "group": [3], **dict.fromkeys(("qid", "weight", "position"))}),
    "get_metric": (ours.get_metric, {"metric": "map", "convention": None}),
    "get_objective": (ours.get_objective, {"objective": "lambdamart"}),
    "objective_for": (ours.objective_for, {"metric": "map"}),
    "check_metric": (ours.check_metric, {"metric": METRIC, "labels": [0, 1]}),
    "check_objective": (ours.check_objective, {"objective": ours.RankNet(), "labels": [0, 1]}),
}  # fmt: skip
OF_EACH_CLASS = [
    *(examples[-1] for examples in (*EXAMPLES.values(), *catalog.METRICS.values())),
    ours.Subsample("ranknet", queries=0.5),
    ours.UnitHessian("ranknet"),
    ours.Langevin("ranknet", temperature=1, learning_rate=0.1),
    ours.StochasticLabels("ranknet", labels=[None, "revenue"], weights=[2, 1]),
    ours.Mixture(["ranknet", "listnet[revenue]"]),
    ours.FairExposure(),
    ours.Preferences([[1, 0]], 3),
]


def computed(thing):
    """The value or the gradient of a metric or an objective."""
    labels = GOALS if isinstance(thing, ours.Objective) and thing.facts.goals else LISTS["labels"]
    compute = thing.per_query if isinstance(thing, ours.Metric) else thing.gradient_hessian
    return compute(LISTS["scores"], labels, LISTS["group"])


def numbers(found):
    """All numbers in a result of plain containers and arrays."""
    if isinstance(found, dict | list | tuple):
        return [x for each in (found.values() if isinstance(found, dict) else found) for x in numbers(each)]
    return np.ravel(found).tolist() if isinstance(found, np.ndarray | float) else []


def computed_by(cls):
    return lambda **settings: computed(cls(**settings))


FUNCTIONS |= {type(each).__name__: (computed_by(type(each)), each.settings()) for each in OF_EACH_CLASS}


def test_every_public_callable_is_tried():
    skipped = {"LTRError", "LTRWarning", "Metric", "Objective", "Report", "metrics", "objectives"}
    assert {name for name in ours.__all__ if callable(getattr(ours, name))} - skipped <= FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_type_gives_finite_numbers_or_our_error(name):
    call, arguments = FUNCTIONS[name]
    for argument, value in itertools.product(arguments, WRONG):
        with contextlib.suppress(LTRError):
            assert np.isfinite(numbers(call(**{**arguments, argument: value}))).all(), (argument, value)


NUMBERS = (
    2, 3.0, 0.5, np.int8(2), np.uint64(2), np.float16(0.5), np.float16(2), np.float32(0.5),
    np.longdouble(2), np.longdouble("1e4000"), Fraction(1, 2), Fraction(3), Decimal("0.5"), 2**63, 10**300, 10**400,
    -(10**400), 10**5000, 1e300,
)  # fmt: skip


def refusal(call):
    """The message of the LTRError that the call raises, or None, and what it returns."""
    try:
        return None, call()
    except LTRError as error:
        return str(error), None


def outcome(thing):
    """The error, or the bytes of the value or of the gradient."""
    message, found = refusal(lambda: computed(thing))
    return message, None if found is None else np.asarray(found).tobytes()


@pytest.mark.parametrize("example", OF_EACH_CLASS, ids=lambda example: type(example).__name__)
def test_numbers_of_every_type_are_refused_by_name_or_count_as_they_are(example):
    for argument, value in itertools.product(example.settings(), NUMBERS):
        message, made = refusal(lambda a=argument, value=value: dataclasses.replace(example, **{a: value}))
        if message is None:
            plain = int(value) if value == int(value) else float(value)
            same = dataclasses.replace(example, **{argument: plain})
            assert outcome(made) == outcome(same), (argument, value)
        else:
            assert argument in message or "goal" in argument or "has no cutoff" in message, message
            assert len(message) < 1000


def test_iterations_are_whole_numbers():
    for wrong in ("a", 1.5, None, [1], np.timedelta64(1, "D")):
        with pytest.raises(LTRError, match=r"iteration=.* must be a whole number"):
            OBJECTIVE.gradient_hessian(**LISTS, iteration=wrong)
    expected = OBJECTIVE.gradient_hessian(**LISTS, iteration=2**64 - 1)[0].tobytes()
    for same in (-1, np.int64(-1), np.uint64(2**64 - 1)):
        assert OBJECTIVE.gradient_hessian(**LISTS, iteration=same)[0].tobytes() == expected


def takes_table(example, argument):
    for table in ([0.0, 1.0, 2.0], [2.0, 1.0, 0.0]):
        with contextlib.suppress(LTRError):
            return bool(dataclasses.replace(example, **{argument: table}))
    return False


TABLES = [
    (example, argument)
    for example in OF_EACH_CLASS
    for argument in example.settings()
    if takes_table(example, argument)
]


@pytest.mark.parametrize(("example", "argument"), TABLES)
def test_tables_hold_numbers_and_hide_none(example, argument):
    for values in (np.arange(3), np.arange(3)[::-1]):
        masked, kinds = np.ma.masked_array(values, mask=[0, 1, 0]), ("datetime64[D]", "timedelta64[s]", str, complex)
        for wrong in (masked, *map(values.astype, kinds), values[None]):
            with pytest.raises(LTRError, match=f"^{argument}[ =]"):
                dataclasses.replace(example, **{argument: wrong})


# estimators


DATA = fold().train


EVALUATED = {"X": DATA.X, "y": DATA.y, "qid": DATA.qid, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
NO_LISTS = (3, 2.5, object(), len, True, np.timedelta64(2, "D"))
OF_FIT = {
    "X": (None, 3, "a", [3], {}, len),
    "eval_set": (*NO_LISTS, [3], [None], "a", [[1]], np.array([1, 2])),
    **dict.fromkeys(("eval_group", "eval_qid", "eval_sample_weight"), NO_LISTS),
    "callbacks": (*NO_LISTS, [3], [None], "a", [[1]], np.array([1, 2])),
    "early_stopping_rounds": ("a",),
}
OF_RANKERS = {
    "eval_metric": (*NO_LISTS, [3]),
    "callbacks": (*NO_LISTS, [3], "a"),
    "n_estimators": ("a", 2.5, [3], {}, len, np.timedelta64(2, "D")),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_rankers_refuse_arguments_of_a_wrong_type(library):
    """By our errors or those of Python, scikit-learn or the library."""
    pytest.importorskip(library)
    of_the_library = ranker(library).library.exception(), SystemError  # CatBoost 1.2.0 of callbacks
    refused = pytest.raises((ValueError, TypeError, AttributeError, *of_the_library))
    for argument, values in OF_FIT.items():
        for value in values:
            with refused:
                ranker(library, n_estimators=1).fit(**{**EVALUATED, argument: value})
    for argument, values in OF_RANKERS.items():
        for value in values:
            with refused:
                ranker(library, **{argument: value}).fit(**EVALUATED)
