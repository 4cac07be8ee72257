"""Parameters that would change nothing: names given twice, and those of the libraries' own objectives and metrics."""

from collections.abc import Mapping
from typing import Any

from ltr_objectives.errors import LTRError, require
from ltr_objectives.libraries import Library
from ltr_objectives.objectives.base import Objective


def refuse_twice(library: Library, given: Mapping[str, Any]) -> None:
    """Raise for a parameter under two names, of which the library would silently read one."""
    given = {**given, "objective": True, "eval_metric": True}  # which a ranker always has
    for name in given:
        twice = " and ".join(f"{each}=" for each in library.given(name, given))
        require(
            twice == f"{name}=",
            f"{twice} are names of one parameter; give one, objective= or eval_metric= if it is among them",
        )


def refuse_unread(library: Library, params: Mapping[str, Any]) -> None:
    """Raise for parameters of the library's own objectives and their gains, beside an objective of ours."""
    for name in library.unread:
        for given, value in library.given(name, params).items():
            of_its_own = f"{given}={value!r} is read by {library.name}'s own objectives"
            raise LTRError(f"{of_its_own}, and changes nothing in ours; leave it out")


def pairs_of_rows(objective: Objective) -> bool:
    """True if a part of the objective has pairs, by number of row."""
    return not objective.facts.reads_labels or any(pairs_of_rows(member.objective) for member in objective.members)
