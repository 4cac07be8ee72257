"""Parameters that would change nothing: names given twice, and those of the libraries' own objectives and metrics."""

from collections.abc import Mapping
from typing import Any

from ltr_objectives.adapters._libraries import Library
from ltr_objectives.errors import LTRError, require
from ltr_objectives.objectives.around import Wrapper
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import Mixture
from ltr_objectives.objectives.preferences import Preferences

OF_FIT = ("init_model", "xgb_model")


def check_names(library: Library, given: Mapping[str, Any], ranker: str) -> None:
    """Raise for parameters that ``ranker`` has under another name, or gets twice under two names."""
    seen: list[str] = []
    for name in given:
        ours = next((ours for its, ours in library.renamed.items() if name in library.names(its)), name)
        require(ours == name, f"{name}= is called {ours}= in this {ranker}")
        require(name not in OF_FIT, f"{name}= is not a parameter; call fit(..., init_model=) to go on from a model")
        other = next((each for each in seen if each in library.names(name)), None)
        require(other is None, f"{other}= and {name}= are names of one parameter; give one of them")
        seen.append(name)


def refuse_unread(library: Library, params: Mapping[str, Any]) -> None:
    """Raise for parameters of the library's own objectives and their gains, beside an objective of ours."""
    for name, ours in library.unread.items():
        value = params.get(name)
        if value is None:
            continue
        remedy = f", or write it in an objective that has it, as in {ours.format(value)!r}" if ours else ""
        if ours.endswith("="):  # an argument, not the text of an objective
            remedy = f", or correct clicks by {ours} and an objective that takes clicks, as 'lambdamart'"
        if ours.startswith("eval_metric="):
            remedy = f", or write the gains in the metric, as in {ours}"
        raise LTRError(
            f"{name}={value!r} is read by {library.name}'s own objectives, and changes nothing in ours; leave it out"
            + remedy
        )


def pairs_of_rows(objective: Objective) -> bool:
    """True if a part of the objective has pairs, by number of row."""
    return any(isinstance(leaf, Preferences) for leaf in leaves(objective))


def leaves(objective: Objective) -> list[Objective]:
    """Return the objectives that one wraps or adds up, or itself."""
    if isinstance(objective, Mixture):
        return [leaf for part, _ in objective.weighted for leaf in leaves(part)]
    return leaves(objective.wrapped) if isinstance(objective, Wrapper) else [objective]
