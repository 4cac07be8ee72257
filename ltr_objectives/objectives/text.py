"""The text language of objectives and metrics: "2*yetiloss:map@5;noise=gaussian[revenue] + listnet".

    sum        parts joined by +
    part       [weight *] objective
    objective  name [: [metric] [; parameter = value ...]] [goal in brackets]
    metric     name [@ cutoff] [goal in brackets]

Every sign is read once, so that the longest text takes milliseconds. :mod:`ltr_objectives.registry` finds the classes.
"""

import ast
import re
from typing import Any

from ltr_objectives.errors import LTRError, did_you_mean, require, shown

# A number takes the sign of an exponent with it, but never the + between two parts.
NUMBER = r"[0-9.](?:[0-9.e]|(?<=[0-9.]e)[+-])*"
# A + joins parts if a name follows, with or without a weight. That of 1e+3 follows a number's e, and the two of
# weights=ndcg2++ are not before a name.
PLUS = re.compile(rf"(?<![0-9.]e)\+(?=\s*(?:{NUMBER}\s*\*\s*)?[a-z]+\s*(?:[:+\[]|$))", re.IGNORECASE)
PART = re.compile(rf"(?:({NUMBER})\s*\*\s*)?(.*)", re.DOTALL | re.IGNORECASE)
METRIC = re.compile(r"([a-z]+)(?:@([0-9]{1,9}))?")
METRIC_ELSEWHERE = re.compile(r"([a-z]+)(?:[^a-z0-9][^0-9]*)?([1-9][0-9]{0,8})?")  # P@5, ndcg_cut_10


def split_sum(text: str) -> list[str]:
    """The parts of a sum; one without a +."""
    return PLUS.split(text)


def split_weight(part: str) -> tuple[Any, str]:
    """The weight of a part, None if it has none, and the objective.

    >>> split_weight(" .3 * yetiloss:mrr")
    (0.3, 'yetiloss:mrr')
    """
    match = PART.fullmatch(part.strip())
    weight, objective = (None, part) if match is None else match.groups()
    return None if weight is None else literal(weight.lower()), objective


def split_metric(text: str) -> tuple[str, int | None] | None:
    """Name and cutoff of a metric without goal; None if the text has another form."""
    match = METRIC.fullmatch(text.lower())
    return match and (match[1], None if match[2] is None else int(match[2]))


def split_objective(text: str) -> tuple[str, str]:
    """The name of an objective without goal, and its settings."""
    weight, objective = split_weight(text.lower())
    require(
        weight is None,
        f"{shown(text)} is not a sum, and only parts of a sum have weights: leave out the weight, or add a part, "
        "as in '2*yetiloss:map+.3*yetiloss:ndcg@10'",
    )
    name, _, settings = objective.partition(":")
    return name, settings


def read_settings(text: str, name: str, known: tuple[str, ...]) -> dict[str, Any]:
    """The settings of the objective ``name``, which has the parameters ``known``, by parameter."""
    found: dict[str, Any] = {}
    for i, part in enumerate(part.strip() for part in text.split(";") if text):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and i == 0:
            require("metric" in known, f"{name} does not take a metric; write {name!r}")
            found["metric"] = part
        elif not equals or not value:
            raise LTRError(
                f"{shown(part)} in {shown(f'{name}:{text}')} is not of the form parameter=value, such as 'sigma=2'"
            )
        else:
            listed = ", ".join(known)
            require(key in known, f"{name} has no parameter {shown(key)}; there are {listed}{did_you_mean(key, known)}")
            require(key not in found, f"{key} is given twice in {shown(f'{name}:{text}')}")
            found[key] = literal(value)
    return found


def literal(text: str) -> Any:
    """Read ``text`` as a Python literal, also none, true and false. Any other text is returned as it is."""
    try:
        return ast.literal_eval({"none": "None", "true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two for brackets that are too deep
        return text
