"""Parameters that would change nothing: names given twice, and those of the libraries' own objectives and metrics."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ltr_objectives.adapters._libraries import Library
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.around import Wrapper
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import Mixture

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


def refuse_unread(library: Library, params: Mapping[str, Any], objective: Objective) -> None:
    """Raise for parameters of the library's own objectives beside ours; warn if it may read them for a metric."""
    for name, ours in library.unread.items():
        value = params.get(name)
        if value is None:
            continue
        if name == library.gain:
            gain = library.read_gain(value)
            for part in leaves(objective):
                if _gain(part) not in (None, gain):
                    warn(f"{name}={value!r} does not change the gains of {part.inner.name}; {_written(gain)}")
            continue
        remedy = f", or write it in an objective that has it, as in {ours.format(value)!r}" if ours else ""
        if ours.endswith("="):  # an argument, not the text of an objective
            remedy = f", or correct clicks by {ours} and an objective that takes clicks, as 'lambdamart'"
        raise LTRError(
            f"{name}={value!r} is read by {library.name}'s own objectives, and would change nothing here; leave it out"
            + remedy
        )


def with_gain(
    library: Library, params: Mapping[str, Any], objective: Objective | str, needed: bool = True
) -> Objective | str:
    """The objective; if it is ours, with the gains that a parameter of the library's gives to its own.

    Raises for one without gains if they are ``needed``.
    """
    value = params.get(library.gain)
    if value is None or isinstance(objective, str):
        return objective
    found = {_gain(leaf) for leaf in leaves(objective)} - {None}
    if not found and not needed:
        return objective
    gain = library.read_gain(value)
    given = f"{library.gain}={value!r} is for objectives with gains"
    metric = vars(objective.inner).get("metric")
    name = objective.inner.name + (f":{metric}" if metric is not None else "")
    require(found, f"{given}, and {name} has none of its own; leave it out, or {_written(gain)}")
    other = next((each for each in found if each not in ("exp", gain)), None)
    require(other is None, f"{given}, but {name} has the gains {other!r}; leave one of the two out")
    return _replaced(objective, gain)


def leaves(objective: Objective) -> list[Objective]:
    """Return the objectives that one wraps or adds up, or itself."""
    if isinstance(objective, Mixture):
        return [leaf for part, _ in objective.weighted for leaf in leaves(part)]
    return leaves(objective.wrapped) if isinstance(objective, Wrapper) else [objective]


def _written(gain: Any) -> str:
    return f"write them in the objective, as in 'yetiloss:ndcg(gain_type={str(gain).replace(' ', '')})'"


def _gain(objective: Objective) -> Any:
    """The gains by which an objective weighs labels; None if it has none."""
    own = {name: value for name, value in vars(objective).items() if name in objective.parameters()}
    metric = own.get("metric")
    return metric.gain_type if isinstance(metric, DCG) and type(metric).gain is DCG.gain else own.get("gain")


def _replaced(objective: Objective, gain: Any) -> Objective:
    changed: dict[str, Any]
    if isinstance(objective, Wrapper):
        changed = {"objective": _replaced(objective.wrapped, gain)}
    elif isinstance(objective, Mixture):
        changed = {"parts": tuple(_replaced(part, gain) for part, _ in objective.weighted)}
    elif _gain(objective) is None:
        return objective
    elif "gain" in objective.parameters():
        changed = {"gain": gain}
    else:
        changed = {"metric": replace(vars(objective)["metric"], gain_type=gain)}
    return replace(objective, **changed)
