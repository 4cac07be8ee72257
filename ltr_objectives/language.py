"""The text language of objectives and metrics: "2*yetiloss:map@5;noise=gaussian[liked] + listnet".

    sum        parts joined by +, of objectives or of metrics
    part       [weight *] objective
    objective  name [: [metric] [; parameter = value ...]] [goal in brackets]
    metric     name [(parameter = value, ...)] [@ cutoff] [goal in brackets]

The longest text takes milliseconds. Classes are found by
:func:`ltr_objectives.get_objective` and :func:`ltr_objectives.get_metric`.
"""

import ast
import re
from typing import Any

import numpy as np

from ltr_objectives.checks import is_number
from ltr_objectives.errors import LTRError, did_you_mean, require, shown
from ltr_objectives.goals import split_goal

WORD = "[a-z]+"  # the name of a class; capital letters in a text are read as small ones
# A number takes the sign of an exponent with it, but never the + between two parts.
NUMBER = r"[0-9.](?:[0-9.e]|(?<=[0-9.]e)[+-])*"
# A + joins parts if a name follows, with or without a weight: not the + of an exponent (1e+3), nor those of
# weights=ndcg2++, which no name follows. What may follow the name differs.
PLUS, METRIC_PLUS = (
    re.compile(rf"(?<![0-9.]e)\+(?=\s*(?:{NUMBER}\s*\*\s*)?{WORD}\s*(?:[{follows}+\[]|$))", re.IGNORECASE)
    for follows in (":", "@(")
)
PART = re.compile(rf"(?:({NUMBER})\s*\*\s*)?(.*)", re.DOTALL | re.IGNORECASE)
# in messages
METRIC_FORM = "such as 'ndcg@10', 'map(threshold=2,empty=skip)' or 'ndcg@10 + 0.3*map' (weights in front, at least 0)"
OBJECTIVE_FORM = (
    "such as 'yetiloss:map', 'lambdamart:ndcg;sigma=2' or 'listnet + 0.3*hinge' (weights in front, at least 0)"
)
METRIC = re.compile(rf"({WORD})\s*(?:\((.*)\))?(?:@([0-9]{{1,9}}))?", re.DOTALL)


def split_sum(text: str, plus: re.Pattern[str] = PLUS) -> list[tuple[Any, str, str | None]]:
    """Return the weight, the text and the goal of each part of a sum; the weight is None if none is written.

    >>> split_sum("yetiloss:ndcg@10 + .3 * yetiloss:mrr[liked]")
    [(None, 'yetiloss:ndcg@10', None), (0.3, 'yetiloss:mrr', 'liked')]
    """
    return [_split_part(part.strip()) for part in plus.split(text)]


def _split_part(part: str) -> tuple[Any, str, str | None]:
    match = PART.fullmatch(part)
    weight, plain = (None, part) if match is None else match.groups()
    return None if weight is None else literal(weight.lower()), *split_goal(plain)


def split_metric(text: str) -> tuple[str, str, int | None] | None:
    """Return the name, settings and cutoff of a metric without goal; None if the text has another form.

    >>> split_metric("map(threshold=2.5)@10")
    ('map', 'threshold=2.5', 10)
    """
    match = METRIC.fullmatch(text.lower())
    return match and (match[1], match[2] or "", None if match[3] is None else int(match[3]))


def metric_text(name: str, settings: dict[str, Any]) -> str:
    """Return the text of a metric without cutoff and goal.

    >>> metric_text("map", {"threshold": 2.5, "empty": 1})
    'map(threshold=2.5,empty=1)'
    """
    return f"{name}({','.join(setting_texts(settings))})" if settings else name


def weight_text(weight: float) -> str:
    """Return the text before a part of a sum, such as ``2*``; none for a weight of 1."""
    return "" if weight == 1 else f"{_plain(weight)}*"


def setting_texts(settings: dict[str, Any]) -> list[str]:
    """Return the text ``parameter=value`` of each setting."""
    return [f"{name}={_plain(value)}".replace(" ", "") for name, value in settings.items()]


def _plain(value: Any) -> Any:
    """Return the value; equal numbers as one of them, such as 3 and 3.0."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if not is_number(value):
        return value
    number, most = (float(value), 1e15) if isinstance(value, float | np.floating) else (int(value), 2**64)  # a seed
    return int(number) if number == int(number) and abs(number) < most else float(number)


def split_list(text: str) -> list[str]:
    """Return the entries of a list with commas, such as metrics, whose settings may have commas too; [] if blank.

    >>> split_list("gap(weights=(1, 2), ties=best)@10, map")
    ['gap(weights=(1, 2), ties=best)@10', 'map']
    """
    entries, depth = [""], 0
    for piece in re.split(r"([,()\[\]])", text):
        depth += (piece in ("(", "[")) - (piece in (")", "]"))
        if piece == "," and depth <= 0:
            entries.append("")
        else:
            entries[-1] += piece
    return [entry.strip() for entry in entries] if text.strip() else []


def split_objective(text: str) -> tuple[str, str]:
    """Return the name of an objective without goal, and its settings."""
    name, _, settings = text.lower().partition(":")
    form = f"objective {shown(text)} is not of the form name:metric;parameter=value, {OBJECTIVE_FORM}"
    require(not re.search(r"[-*/@,;=]", name.partition("(")[0]), form)
    return name, settings


def read_settings(text: str, name: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Read the settings of the objective ``name``, which has the parameters ``known``, by parameter."""
    first, *others = parts = [part.strip() for part in text.split(";")]
    if not text or "=" in first.partition("(")[0]:
        return read_values(parts if text else [], f"{name}:{text}", name, known)
    require("metric" in known, f"{name} does not take a metric; write {name!r}")
    found = read_values([f"metric={first}", *others], f"{name}:{text}", name, known)
    return {**found, "metric": first}  # also if it reads as another value, such as none


def read_values(parts: list[str], whole: str, name: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of ``parts``, ``parameter=value``, by parameter; ``name`` and ``whole`` are for messages."""
    found: dict[str, Any] = {}
    for part in parts:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        require(
            equals and value and re.fullmatch(r"\w+", key) and "=" not in value.partition("(")[0],
            f"{shown(part)} in {shown(whole)} is not of the form parameter=value; parameters of objectives have ; "
            "between them, those of metrics commas, as in 'lambdamart:ndcg(gain_type=linear,empty=skip)@10;sigma=2'",
        )
        if key not in known:
            there = f"there are {', '.join(known) or 'none'}{did_you_mean(key, known)}"
            raise LTRError(f"{name} has no parameter {shown(key)}; {there}")
        require(key not in found, f"{key} is given twice in {shown(whole)}")
        found[key] = literal(value)
    return found


def literal(text: str) -> Any:
    """Read ``text`` as a Python literal, also none, true and false. Any other text is returned as it is."""
    try:
        return ast.literal_eval({"none": "None", "true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two for brackets that are too deep
        return text
