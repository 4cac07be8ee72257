"""What the docstrings of metrics, and of objectives around others, say is raised is raised, and nothing else is."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

import ltr_objectives
from ltr_objectives import LTRError, Metric, evaluate, registry

METRICS = [registry.metric_class(name) for name in registry.metrics()]
AROUND = [
    thing
    for name in ltr_objectives.__all__
    if getattr(thing := getattr(ltr_objectives, name), "name", None) in registry.WRAPPERS
]
GOOD = {"objective": "ranknet", "parts": ["ranknet", "queryrmse"], "labels": [None, "revenue"]}


def section(cls):
    """What the class says that it raises, with what it refers to."""
    found = re.search(r"Raises\n------\nLTRError\n((?:    .*\n)+)", inspect.getdoc(cls) + "\n")
    text = " ".join(found[1].split())
    others = [Metric] * ("As every metric" in text) + [
        getattr(ltr_objectives, name) for name in re.findall(r"As :class:`(\w+)`", text)
    ]
    return text + " ".join(map(section, others))


def names(cls):
    return {field.name for field in dataclasses.fields(cls)}


def example(cls, **given):
    """An object of the class with these settings, and whatever else it needs."""
    needed = {name: good for name, good in GOOD.items() if name in names(cls)}
    if getattr(cls, "cutoff", None) == "required":
        needed["k"] = 3
    return cls(**{**needed, **given})


def refused(call):
    try:
        call()
    except LTRError:
        return True
    return False


@pytest.mark.parametrize("cls", [*METRICS, *AROUND])
def test_every_parameter_is_named_and_checked(cls):
    assert set(re.findall(r"``(\w+)``", section(cls))) == names(cls)
    example(cls)
    for name in names(cls):
        for wrong in (object(), [[]], b"x"):
            with pytest.raises(LTRError):
                example(cls, **{name: wrong})


SCORES = np.linspace(1, 0, 40)
EVALUATED = {  # words: labels that are refused in a list of 40
    "for labels below 0": [-1.0],
    "those above 1000": [1001.0],
    "above ``max_label``": [4.5],
    "more than 32 different labels": np.arange(40) / 40,
}
MADE = {
    "without ``k``": {"k": None},
    "for any ``k``": {"k": 3},
    '"untied" with ``ties`` other than "average"': {"normalizer": "untied", "ties": "input"},
    '``max_label`` that is not above 0, or above 1000 with "exp"': {"grades": "exp", "max_label": 1001},
    "a ``max_label`` that is not above 0": {"max_label": 0},
    "an ``ideal_k`` that is not a whole number of at least 1": {"ideal_k": 0},
    "a ``temperature`` or ``shrink`` below 0": {"temperature": -1},
    "or ``shrink`` below 0": {"shrink": -1},
    "a ``learning_rate`` that is not above 0": {"learning_rate": 0},
    "an unknown ``objective``": {"objective": "nothing"},
    "``parts`` that are unknown or none": {"parts": []},
    "fewer than two ``labels``": {"labels": ["revenue"]},
    "or the same twice": {"labels": ["revenue", "revenue"]},
    "``labels`` of another number": {"labels": ["revenue"]},
    "``weights`` of another number, below 0 or all 0": {"weights": [0, 0]},
    "of another number, below 0": {"weights": [1, -1]},
    "for ``weights`` of another number": {"weights": [1, 2, 3]},
}


@pytest.mark.parametrize("words", EVALUATED)
def test_labels_are_refused_where_the_text_says_so(words):
    labels = np.resize(EVALUATED[words], 40)
    for cls in METRICS:
        text = section(cls)
        said = words in text and not ("apart" in text and "below 0" in words)
        limit = example(cls).label_limit
        if words.startswith("those above 1000") and limit is not None and limit < 1000:
            continue  # smaller labels are refused too
        assert refused(lambda cls=cls: evaluate(example(cls), SCORES, labels, [40])) == said, cls


@pytest.mark.parametrize("words", MADE)
def test_settings_are_refused_where_the_text_says_so(words):
    found = [cls for cls in (*METRICS, *AROUND) if words in section(cls)]
    assert found
    for cls in found:
        with pytest.raises(LTRError):
            example(cls, **MADE[words])


@pytest.mark.parametrize("cls", [cls for cls in AROUND if "labels of a goal are missing" in section(cls)])
def test_data_without_the_labels_of_a_goal_are_refused(cls):
    with pytest.raises(LTRError, match="there are no labels 'revenue'"):
        example(cls, labels=[None, "revenue"]).gradient_hessian([0.0, 1.0], [0, 1], [2])
