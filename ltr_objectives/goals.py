"""Goals: names of labels, for data sets that have labels of several kinds, such as relevance and revenue."""

import re
from collections.abc import Iterable

from ltr_objectives.errors import did_you_mean, require, shown

NAME = r"[^\s\[\]:;,+*=]+"  # the excluded characters have a meaning in texts of objectives, or in what XGBoost prints
AT_THE_END = re.compile(rf"(.*?)(?<!=)\[({NAME})\]\s*", re.DOTALL)  # "gain=[1]" is a parameter


def check_goal(goal: object) -> object:
    """Return ``goal``; raise unless it can name labels."""
    good = isinstance(goal, str) and re.fullmatch(NAME, goal)
    require(good, f"{shown(goal)} cannot name labels; choose a name without spaces and without any of [ ] : ; , + * =")
    return goal


def split_goal(text: str) -> tuple[str, str | None]:
    """Return the text and the goal in brackets at its end, None without one.

    >>> split_goal("ndcg@10[liked]"), split_goal("ndcg@10")
    (('ndcg@10', 'liked'), ('ndcg@10', None))
    """
    found = AT_THE_END.fullmatch(text)
    return (text, None) if found is None else (found[1], found[2])


def with_goal(text: str, goal: str | None) -> str:
    """Return ``text`` with the goal in brackets, as :func:`split_goal` reads it."""
    return text if goal is None else f"{text}[{goal}]"


def check_read(given: Iterable[str], read: Iterable[str], reader: str) -> None:
    """Raise for labels that are ``given`` but not ``read``: probably a goal was left out, or misspelt."""
    known = tuple(dict.fromkeys(read))
    unused = next((goal for goal in given if goal not in known), None)
    have = f"it reads {', '.join(map(repr, known))}" if known else "it reads no goal"
    in_brackets = f"'yetiloss:ndcg@10+0.3*yetiloss:dcg(gain_type=linear)[{unused}]'"
    near = did_you_mean(unused, known)
    remedy = "; write one name in both places" if near else f"; leave it out, or name it as in {in_brackets}"
    require(unused is None, f"labels has {unused!r}, which {reader} does not read ({have}){remedy}")
