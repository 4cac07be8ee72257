"""Objectives from text."""

from ltr_objectives import language
from ltr_objectives.errors import require, shown
from ltr_objectives.extensible import find_class
from ltr_objectives.objectives.base import Objective


def read_parts(text: str) -> list[tuple[float, Objective, str | None]]:
    """Return the weight, the objective and the goal of each part of a sum; of one objective the weight 1."""
    parts = language.split_sum(text)
    require(
        len(parts) > 1 or parts[0][0] is None,
        f"{shown(text)} is not a sum, and only parts of a sum have weights: leave out the weight, or add a part, "
        "as in '2*yetiloss:map+0.3*yetiloss:ndcg@10'",
    )
    return [(1.0 if weight is None else weight, _read(plain.strip()), goal) for weight, plain, goal in parts]


def _read(text: str) -> Objective:
    """Return the objective of a text without weight and goal."""
    name, settings = language.split_objective(text)
    start, bracket, inside = name.partition("(")
    require(
        not bracket or start not in Objective.named,
        f"{shown(text)}: the parameters of an objective follow a colon; write "
        f"'{start}:{';'.join(language.split_list(inside.removesuffix(')')))}'",
    )
    found = find_class(Objective.named, name, "objective")
    made: Objective = found(**language.read_settings(settings, name, found.parameters()))
    return made
