"""``objective="auto"``: train what suits the metric, and keep the model with the best value on the eval set."""

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._libraries import essence
from ltr_objectives.adapters._parameters import with_gain
from ltr_objectives.adapters._ranker_plan import Plan, check_plan, in_documents
from ltr_objectives.comparison.candidates import check_comparable, natives_for, ours_for
from ltr_objectives.comparison.statistics import differences
from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective

if TYPE_CHECKING:
    from ltr_objectives.adapters._ranker import Ranker, Records

AUTO = "auto"


class Candidate(NamedTuple):
    """One objective that was tried.

    Attributes
    ----------
    objective : str
    native : bool
        Whether it is the library's own.
    value : float or None
        Its mean over the queries of the last pair of ``eval_set``; None where it cannot be trained on these data.
    rounds : int
        The rounds that its model predicts with.
    difference, se, p : float or None
        The mean difference from the chosen one over queries, its paired standard error, and p of the paired t-test
        after Holm's correction; None for the chosen one and for what was left out.
    left_out : str
        Why it could not be trained; empty where it was.
    """

    objective: str
    native: bool
    value: float | None = None
    rounds: int = 0
    difference: float | None = None
    se: float | None = None
    p: float | None = None
    left_out: str = ""


@dataclass(frozen=True)
class Decision:
    """What ``objective="auto"`` tried, and what it chose. ``str`` of it is a table.

    Attributes
    ----------
    metric : str
        The metric that decided.
    chosen : str
        The objective with the largest mean; the first of equal ones.
    queries : int
        Queries of the last pair of ``eval_set``.
    candidates : tuple of Candidate
        In the order in which they were tried. The chosen one was selected on these queries, so that its value is
        larger than on new ones.

    Examples
    --------
    >>> ours = Candidate("yetiloss:map", False, 0.75, 10)
    >>> theirs = Candidate("lambdarank", True, 0.7, 8, -0.05, 0.01, 0.002)
    >>> print(Decision("map", "yetiloss:map", 20, (ours, theirs)))
    map over 20 queries
    yetiloss:map  0.7500     10 rounds  chosen
    lambdarank    0.7000      8 rounds  -0.0500 (0.0100), p 0.002
    """

    metric: str
    chosen: str
    queries: int
    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        width = max(len(each.objective) for each in self.candidates)
        head = f"{self.metric} over {self.queries:,} queries"
        return "\n".join([head, *(self._line(each, width) for each in self.candidates)])

    def as_dicts(self) -> list[dict[str, Any]]:
        """The candidates as dicts, such as for a DataFrame."""
        return [each._asdict() for each in self.candidates]

    def _line(self, each: Candidate, width: int) -> str:
        start = f"{each.objective:{width}}  "
        if each.value is None:
            return f"{start}left out: {each.left_out}"
        error = "" if each.se is None else f" ({each.se:.4f})"
        start += f"{each.value:.4f}  {each.rounds:5} rounds  "
        return start + ("chosen" if each.p is None else f"{each.difference:+.4f}{error}, p {each.p:.2g}")


class Choice(NamedTuple):
    """What won, beside its model."""

    objective: Objective | str
    records: "Records"
    report: Decision


def choose(ranker: "Ranker", plan: Plan) -> Choice:
    """Train each candidate as ``plan`` says; the ranker gets the model with the best metric on the last eval set."""
    require(plan.evals, 'objective="auto" chooses on an eval_set; pass fit(..., eval_set=[(X, y)], eval_group=[...])')
    metric = plan.metrics[0]
    if not isinstance(metric, Metric):
        raise LTRError(f'objective="auto" chooses by a metric of ours; name one before {metric!r}, such as "ndcg@10"')
    require(
        not plan.callbacks,
        'callbacks= belong to one training, and objective="auto" runs several; leave them out, then train the chosen '
        "objective_ with them",
    )
    part = plan.evals[-1]
    check_comparable(metric, part.queries, f"eval_set[{len(plan.evals) - 1}], by which objective='auto' chooses")
    weight = None if metric.query_weights == "ignore" else part.queries.weight_by_query
    tried: dict[str, Objective | str] = {**ours_for(metric), **{n: n for n in natives_for(ranker.library.name, metric)}}
    values: dict[str, np.ndarray] = {}
    found: dict[str, Candidate] = {}
    errors: list[Exception] = []
    best: tuple[float, str, Ranker, Objective | str, Records] | None = None
    for label, objective in tried.items():
        trial, native = copy.copy(ranker), isinstance(objective, str)  # a copy: an error leaves the ranker as it was
        try:
            objective = with_gain(ranker.library, plan.params, objective, needed=False)
            each = plan._replace(objective=in_documents(objective))
            check_plan(each, ranker.library)
            trial.booster_, records = trial._train_plan(each)
        except (LTRError, ranker.library.exception()) as error:
            found[label] = Candidate(label, native, left_out=" ".join(essence(str(error)).split()))
            errors.append(error)
            continue
        values[label] = metric.values(part.queries, trial._scores(part.X), n_threads=plan.n_threads)
        value = metric.average(*metric.sums(values[label], weight))
        found[label] = Candidate(label, native, value, trial._rounds(trial.booster_))
        if best is None or value > best[0]:
            best = value, label, trial, objective, records
    if best is None:
        raise errors[0]
    _, chosen, trial, objective, records = best
    vars(ranker).update(vars(trial))
    others = {label: v for label, v in values.items() if label != chosen}
    for label, of in differences(others, values[chosen], weight).items():
        se = of["se"] if np.isfinite(of["se"]) else None  # of a single query there is none
        found[label] = found[label]._replace(difference=of["difference"], se=se, p=of["p"])
    report = Decision(str(metric), chosen, len(part.queries), tuple(found.values()))
    return Choice(objective, records, report)
