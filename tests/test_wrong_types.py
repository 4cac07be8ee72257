"""A public function refuses a bad argument, of any type, by an LTRError."""

import contextlib
import dataclasses
import itertools
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from catalog import EXAMPLES, METRICS
from rankers import LIBRARIES, fold, ranker

import ltr_objectives as ours
from ltr_objectives import LTRError, Objective, datasets, registry

WRONG = [
    None, "a", "", b"x", -1, 3.5, float("nan"), 1j, object(), [], {}, (), {1}, [None], [[1]], True, LTRError, len,
    np.array([1, 2]), np.array(["a"]), np.ma.masked_array([1.0, 2.0], mask=True), np.array(["2020"], "datetime64[D]"),
    np.timedelta64(2, "D"), 12.0, Fraction(1, 2), 10**400,
]  # fmt: skip
DATA = fold().train
LISTS = {"scores": [1.0, 2.0, 0.0], "labels": [1, 0, 2], "group": [3]}
OPTIONAL = dict.fromkeys(("weight", "qid", "propensity", "position", "n_threads"))
QUERIES = ours.Queries([1, 0, 2], [3])
OBJECTIVE, METRIC = ours.get_objective("yetiloss:map@2"), ours.get_metric("ndcg@2")
FUNCTIONS = {
    "evaluate": (
        ours.evaluate,
        {"metric": "ndcg", **LISTS, "weight": None, "qid": None, "convention": None, "n_threads": None},
    ),
    "gradient_hessian": (OBJECTIVE.gradient_hessian, {**LISTS, **OPTIONAL, "iteration": 0}),
    "report": (OBJECTIVE.report, {**LISTS, **OPTIONAL}),
    "compute": (OBJECTIVE.compute, {"queries": QUERIES, "scores": [1.0, 2, 0], "iteration": 0, "n_threads": None}),
    "per_query": (METRIC.per_query, {**LISTS, "qid": None, "n_threads": None}),
    "swap_changes": (METRIC.swap_changes, {"labels": [1, 0, 2]}),
    "move_changes": (METRIC.move_changes, {"labels": [1, 0, 2]}),
    "with_convention": (METRIC.with_convention, {"library": "lightgbm"}),
    "Queries": (ours.Queries, {"labels": [1, 0, 2], "group": [3], **dict.fromkeys(("qid", "weight", "position"))}),
    "get_metric": (ours.get_metric, {"metric": "map"}),
    "get_objective": (ours.get_objective, {"objective": "lambdamart"}),
    "make_ranking": (
        datasets.make_ranking,
        {"queries": 2, "seed": 0, "features": 10, "mean_length": 3.0, "shares": (0.5, 0.5)},
    ),
    "make_ranking_fold": (datasets.make_ranking_fold, {"queries": (1, 1, 1), "seed": 0}),
    "select": (datasets.make_ranking(3, mean_length=3, features=10).select, {"queries": [0, 1]}),
    "Langevin": (ours.Langevin, ours.Langevin(ours.LambdaMART(), temperature=1, learning_rate=0.1).settings()),
    **{name: (cls := Objective.named[name], cls().settings()) for name in registry.objectives()},
    **{name: (type(examples[0]), examples[0].settings()) for name, examples in METRICS.items()},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_types_end_in_our_error_or_in_none(name):
    call, arguments = FUNCTIONS[name]
    for argument in arguments:
        for value in WRONG:
            if name == "compute" and argument == "queries":
                continue  # an object of ours
            with contextlib.suppress(LTRError):
                hash(type(call(**{**arguments, argument: value})))


NUMBERS = (
    2, 3.0, 0.5, np.int8(2), np.uint64(2), np.float16(0.5), np.float16(2), np.float32(0.5),
    np.longdouble(2), np.longdouble("1e4000"), Fraction(1, 2), Fraction(3), Decimal("0.5"), 2**63, 10**300, 10**400,
    -(10**400), 10**5000, 1e300,
)  # fmt: skip
GOALS = {"relevance": LISTS["labels"], "revenue": [0, 1, 0]}
OF_EACH_KIND = [
    *(EXAMPLES[name][-1] for name in registry.objectives()),
    *(examples[-1] for examples in METRICS.values()),
    ours.Subsample("ranknet", queries=0.5),
    ours.Langevin("ranknet", temperature=1, learning_rate=0.1),
    ours.StochasticLabels("ranknet", labels=[None, "revenue"], weights=[2, 1]),
    ours.Mixture(["ranknet", "listnet[revenue]"]),
]


def refusal(call):
    """The message of the LTRError that the call raises, or None, and what it returns."""
    try:
        return None, call()
    except LTRError as error:
        return str(error), None


def computed(thing):
    """The bytes of the value or of the gradient, or the error that numbers are beyond what it can compute."""
    labels = GOALS if isinstance(thing, ours.Objective) and thing.facts.goals else LISTS["labels"]
    compute = thing.per_query if isinstance(thing, ours.Metric) else thing.gradient_hessian
    message, found = refusal(lambda: compute(LISTS["scores"], labels, LISTS["group"]))
    assert message is None or re.search(r"float64|takes labels up to|table needs whole", message), message
    return message, None if found is None else np.asarray(found).tobytes()


@pytest.mark.parametrize("example", OF_EACH_KIND, ids=lambda example: example.name)
def test_numbers_of_every_type_are_refused_by_name_or_count_as_they_are(example):
    for argument, value in itertools.product(example.settings(), NUMBERS):
        message, made = refusal(lambda a=argument, value=value: dataclasses.replace(example, **{a: value}))
        if message is None:
            plain = int(value) if value == int(value) else float(value)
            assert computed(made) == computed(dataclasses.replace(example, **{argument: plain})), (argument, value)
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
    for example, *_ in (*EXAMPLES.values(), *METRICS.values())
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
    refused = pytest.raises((ValueError, TypeError, AttributeError, ranker(library).library.exception()))
    for argument, values in OF_FIT.items():
        for value in values:
            with refused:
                ranker(library, n_estimators=1).fit(**{**EVALUATED, argument: value})
    for argument, values in OF_RANKERS.items():
        for value in values:
            with refused:
                ranker(library, **{argument: value}).fit(**EVALUATED)
