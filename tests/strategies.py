"""The data of the property tests: data sets of every kind of number, valid and invalid."""

import warnings
from typing import Any

import numpy as np
from hypothesis import strategies as st

EXTREME = [0.0, -0.0, 1.0, 5e-324, 2.2e-308, -1e-300, 1e-7, 1.0000001, 1e30, 3.4e38, 1e39, 1e308, -1e308, 1.797e308]
NOT_FINITE = [float("nan"), float("inf"), -float("inf")]
NO_NUMBER = [None, "a", "1", "", True, 2**70, -(2**63), 1 + 2j, [1], (), b"1", object(), np.datetime64("2020-01-01")]
DTYPES = [np.float64, np.float32, np.float16, np.int8, np.int64, np.uint8, np.bool_, object]

labels_0_to_4 = st.integers(0, 4).map(float)
moderate = st.floats(-50, 50)
finite = st.one_of(moderate, st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(EXTREME))
any_float = st.one_of(finite, st.sampled_from(NOT_FINITE))
anything = st.one_of(any_float, st.integers(), st.booleans(), st.sampled_from(NO_NUMBER))


@st.composite
def vectors(draw: Any, length: int, usual: Any, odd: bool = True) -> Any:
    """Draw a vector, mostly of that length; of any numbers if ``odd``, else of usual ones."""
    kind = draw(st.integers(0, 19)) if odd else 0
    if kind == 19:
        return draw(st.sampled_from([None, 3.0, "scores", [], np.zeros((2, 2)), {}, object(), range(3), np.array(1.0)]))
    if kind == 18:
        length = draw(st.integers(0, 8))
    elements = {15: finite, 16: any_float, 17: anything}.get(kind, usual)
    values = draw(st.lists(elements, min_size=length, max_size=length))
    if kind < 14:
        return values if kind % 2 else np.array(values)
    try:
        with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 1 warns of -1 as uint8, 2.0 refuses it
            return np.array(values, draw(st.sampled_from(DTYPES)))
    except (ValueError, TypeError, OverflowError):
        return values


@st.composite
def data_sets(draw: Any, labels: Any = labels_0_to_4) -> dict[str, Any]:
    """Draw arguments ``scores, labels, group or qid, weight``: half of the time all are valid, else one or all odd."""
    names = ("scores", "labels", "group", "weight")
    odd = draw(st.sampled_from([(), (), (), (), *zip(names), names]))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    rows = sum(sizes)
    found = {
        "scores": draw(
            vectors(rows, draw(st.sampled_from([moderate, st.just(0.0), labels_0_to_4, finite])), "scores" in odd)
        ),
        "labels": draw(vectors(rows, labels, "labels" in odd)),
    }
    if draw(st.booleans()):
        found["qid"] = np.repeat(draw(st.sampled_from([np.arange(5), np.array(list("edabc"))]))[: len(sizes)], sizes)
    else:
        found["group"] = sizes
    if "group" in odd:
        found["qid" if "qid" in found else "group"] = draw(vectors(len(sizes), st.integers(-1, 6)))
    if draw(st.booleans()):
        count = draw(st.sampled_from([len(sizes), rows]))
        found["weight"] = draw(vectors(count, st.one_of(st.floats(0, 10), st.just(0.0)), "weight" in odd))
    return found
