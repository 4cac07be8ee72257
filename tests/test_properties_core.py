"""Any numbers give finite output or our own exception, never a crash, a hang or NaN."""

import dataclasses
import json

import numpy as np
import pytest
from catalog import may_be_negative
from conftest import METRICS, OBJECTIVES
from hypothesis import event, example, given
from hypothesis import strategies as st
from strategies import anything, data_sets, labels_0_to_4

from ltr_objectives import LTRError, Queries, evaluate, get_metric, get_objective, registry
from ltr_objectives.objectives.around import Langevin
from ltr_objectives.objectives.mixture import Mixture

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
