"""What the parameters of an estimator name: whose objective and metrics they are, and the names of one parameter."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._tables import Part
from ltr_objectives.checks import check_integer, check_list
from ltr_objectives.errors import LTRError, did_you_mean, require, warn
from ltr_objectives.goals import split_goal
from ltr_objectives.language import METRIC_FORM, OBJECTIVE_FORM
from ltr_objectives.libraries import LIBRARIES, Library
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.text import get_metric, get_metrics, meant_metric, our_metric_name
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries
from ltr_objectives.registry import metric_names, objective_for

Array = ArrayLike | None
Arrays = Sequence[ArrayLike | None] | None  # one for each eval set
Goals = Mapping[str, ArrayLike]  # labels by goal
OneMetric = str | Metric | Callable[..., Any]
EvalMetric = OneMetric | Sequence[OneMetric] | None
AnyObjective = Objective | str | Callable[..., Any]  # ours, the name of the library's own, or a function that it calls
AUTO = "auto"
DEFAULT = "ndcg@10"  # what is trained if neither objective nor metric is named, and scored if no metric is
# parameters of our rankers that a training of the library does not get
OURS = {"objective", "eval_metric", "convention", "bounds", "early_stopping_rounds", "callbacks", "importance_type"}


def is_called(given: Any, library: Library, method: str) -> bool:
    """Return True if the library itself calls this object, so that it is not one of our objectives or metrics."""
    ours = isinstance(given, str | Objective | Metric | type) or hasattr(given, "library")  # such as xgboost_objective
    return not ours and library.calls(given, method)


def chosen_objective(given: Mapping[str, Any], library: Library, queries: Queries) -> Objective:
    """Return the objective for the first metric of these parameters, and its convention, on these queries."""
    first, *_ = read_metrics(given.get("eval_metric", DEFAULT), library, given.get("convention"))
    return objective_for(first if isinstance(first, Metric) else DEFAULT, queries)


def read_objective(objective: Any, library: Library) -> AnyObjective:
    """Return our objective, or what the library gets: the name of its own, functions."""
    if is_called(objective, library, "calc_ders_range"):
        return cast(AnyObjective, objective)
    return read_text(objective, library) if isinstance(objective, str) else get_objective(objective)


def read_text(text: str, library: Library) -> Objective | str:
    """Return our objective, whose name may be in any case, or the library's name, if it is spelled as CatBoost does."""
    head = text.partition(":")[0].strip()
    twin = next((name for name in library.natives if name.lower() == head.lower()), None)
    if library.capitals and head in ("RMSE", *library.natives):
        return text
    if head.lower() in Objective.named or "+" in text or split_goal(text)[1] is not None:
        if twin is not None and head != head.lower():
            warn(f"objective={text!r} is our objective; write {head.lower()!r}, or {twin!r} for {library.name}'s own")
        return get_objective(text)
    if not re.fullmatch(library.objectives, text):
        raise LTRError(unknown_objective(text, library))
    return text


def unknown_objective(text: str, library: Library) -> str:
    """Return the message for an objective that neither we nor the library have."""
    owner = next((each.name for each in LIBRARIES.values() if each.knows(text)), None)
    if owner is not None:
        meant = f"; {owner} has it"
    elif our_metric_name(text):
        meant = f"; to train for this metric write 'yetiloss:{text}'"
    else:
        head, colon, settings = text.partition(":")
        meant = did_you_mean(head, [*Objective.named, *library.natives], colon + settings)
    return f"objective={text!r} is neither ours, {OBJECTIVE_FORM}, nor one of {library.name}'s for rankers{meant}"


def read_metrics(eval_metric: EvalMetric, library: Library, convention: str | None = None) -> tuple[OneMetric, ...]:
    """Return the metrics that were named. Those of the library are strings, functions or objects."""

    def called(metric: Any) -> bool:
        return is_called(metric, library, "evaluate")

    one = isinstance(eval_metric, str | Metric) or callable(eval_metric) or called(eval_metric)
    given: list[Any] = [eval_metric] if one else check_list("eval_metric", eval_metric, "metrics, or one")
    found = tuple(m if called(m) or _is_native(m, library) else get_metric(m, convention) for m in given)
    own = [m for m in found if isinstance(m, Metric)]
    if own or not found:
        get_metrics(own)  # raises for two of one name, and for none
    refuse_same_names([m for m in found if isinstance(m, str)])
    return found


def _is_native(metric: Any, library: Library) -> bool:
    """Return True if the metric is the library's own; raise if it is neither that nor ours."""
    if not isinstance(metric, str):
        return False
    known = bool(re.fullmatch(library.metrics, metric))
    if our_metric_name(metric) and not (library.capitals and known):
        return False
    if not known or metric.lower() == "none":
        raise LTRError(unknown_metric(metric, library))
    return True


def unknown_metric(metric: str, library: Library) -> str:
    """Return the message for a metric that neither we nor the library have."""
    theirs = dir(library.load().metrics) if library.capitals else ("rmse", "mae", "auc", "logloss")
    name, meant = re.findall(r"\A\w*", metric)[0], meant_metric(metric, [*metric_names(), *theirs])
    if metric.lower() == "none":
        meant = "; leave it out to evaluate what the objective optimises"
    elif "@" in metric and our_metric_name(name):
        meant = f"; a cutoff is a whole number, as in '{name}@10'"
    return f"eval_metric={metric!r} is neither ours, {METRIC_FORM}, nor the library's{meant}"


def optimised(objective: AnyObjective, parts: Sequence[Part]) -> Metric | str | None:
    """Return the metric that our objective optimises, else the usual one; None if the library names the objective."""
    if isinstance(objective, str):
        return None
    metric = getattr(objective, "metric", None)
    return metric if isinstance(metric, Metric) else usual_metric(parts, "ndcg")


def usual_metric(parts: Iterable[Part], graded: str = DEFAULT) -> str:
    """Return NDCG, or for labels that are no grades Spearman's correlation."""
    grades = all(part.labels.min() >= 0 and part.labels.max() <= gains.LARGEST_GRADE for part in parts)
    return graded if grades else "spearman"


def read_param(value: Any) -> Any:
    """Return a parameter as the libraries read it: a generator as a seed."""
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**31 - 1))
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    return value


def our_names(library: Library, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with our names of those that we read; raise for one under two names."""
    for name in given:
        twice = " and ".join(f"{each}=" for each in library.given(name, given))
        require(twice == f"{name}=", f"{twice} are names of one parameter; give one")
    least = dict.fromkeys(library.names("early_stopping_rounds"), library.least_patience)
    least |= dict.fromkeys(library.names("n_estimators"), 0)
    whole = {name: check_integer(name, value, least[name]) for name, value in given.items() if name in least}
    ours = {each: name for name in OURS for each in library.names(name)}
    return {ours.get(name, name): value for name, value in {**given, **whole}.items()}


def refuse_same_names(names: Sequence[object]) -> None:
    """Raise for two metrics of one name, whose values the libraries would mix in one record."""
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"two metrics have the name {twice!r}; give each function a name of its own")
