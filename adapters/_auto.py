"""``objective="auto"``: train what suits the metric, and keep the model with the best value on the eval set."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._position_offsets import fits_labels
from ltr_objectives.adapters._run import DOCUMENTS, Run, Trained
from ltr_objectives.adapters._tables import is_pool
from ltr_objectives.attempts import try_each, warn_without_ours
from ltr_objectives.candidates import check_comparable, hessian_of, natives_for, ours_for
from ltr_objectives.errors import LTRError, essence, require
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.statistics import Row, best_of, contest_table


class Candidate(NamedTuple):
    """One objective that ``objective="auto"`` tried.

    Attributes
    ----------
    objective : str
        Its name.
    native : bool
        True if it is the library's own.
    value : float or None
        Its mean over the queries of the last pair of ``eval_set``; None if it was left out. The chosen one was selected
        on these queries, so that its value is larger than on new ones.
    rounds : int
        The rounds that its model predicts with.
    difference : float or None
        Mean difference from the chosen one over queries; None for the chosen one.
    se : float or None
        Paired standard error of the difference.
    p : float or None
        p of the paired t-test after Holm's correction.
    params : dict
        Of a native objective: the parameters beside those of the ranker that give it our defaults; empty if it
        was better at the defaults of its library.
    left_out : str
        The reason if it could not be trained.
    """

    objective: str
    native: bool
    value: float | None = None
    rounds: int = 0
    difference: float | None = None
    se: float | None = None
    p: float | None = None
    params: Mapping[str, Any] = {}
    left_out: str = ""


def train_best(run: Run, library: Library, params: Mapping[str, Any]) -> tuple[Trained, list[Candidate]]:
    """Train each candidate as ``run`` says; return the best by the metric on the last eval set, and all, it first.

    ``params`` are those of the ranker. A native objective is trained at its library's defaults and, if its Hessians are
    known, with those of ours; the better of the two is kept.
    """
    candidates = _candidates(run, library)
    metric, part = run.own_metrics[0], run.evals[-1]
    natives, weight = natives_for(library.name, metric), metric.weight_by_query(part.queries)
    values: dict[str, np.ndarray] = {}  # of the queries that choose

    def train(objective: Objective | str, more: dict[str, Any]) -> tuple[Trained, np.ndarray]:
        of_candidate = run._replace(objective=objective, params={**more, **run.params})
        try:
            of_candidate.refuse_unread(library)
            trained = library.train(of_candidate)
            scores = library.predict(trained.model, part.X, params)
            scores = scores + (0.0 if part.margin is None or is_pool(part.X) else part.margin)
        except library.exception() as error:
            raise LTRError(essence(str(error))) from error
        return trained, metric.values(part.queries, scores, n_threads=run.n_threads)

    def attempt(name: str) -> Trained:
        trained, values[name] = train(candidates[name], {})
        if name in natives and library.twin(name) is not None:
            again, like_ours = train(name, as_ours(run, library, name))
            if best_of({"own": values[name], "ours": like_ours}, weight) == "ours":
                trained, values[name] = again, like_ours
        return trained

    by_name, left_out = try_each(candidates, attempt)
    warn_without_ours(by_name, left_out)
    values = {name: values[name] for name in by_name}
    best = best_of(values, weight)
    report = _report(run, library, by_name, contest_table(values, weight, best, natives))
    return by_name[best], report + [Candidate(name, name in natives, left_out=why) for name, why in left_out.items()]


def _candidates(run: Run, library: Library) -> dict[str, Objective | str]:
    """Return the objectives to try, by name; raise if they cannot be compared."""
    require(run.evals, 'objective="auto" chooses on an eval_set; pass fit(..., eval_set=[(X, y)], eval_group=[...])')
    metric, part = run.metrics[0], run.evals[-1]
    if not isinstance(metric, Metric):
        raise LTRError(f'objective="auto" chooses by one of our metrics; name one before {metric!r}, such as "ndcg@10"')
    require(
        not run.callbacks,
        'callbacks= belong to one training, and objective="auto" runs several; train the chosen objective_ with them',
    )
    check_comparable(metric, part.queries, f"eval_set[{len(run.evals) - 1}], by which objective='auto' chooses")
    natives = {name: name for name in natives_for(library.name, metric)}
    candidates: dict[str, Objective | str] = {**ours_for(metric, run.train.queries), **natives}
    return {name: each for name, each in candidates.items() if run.train.offset is None or not fits_labels(each)}


def _report(run: Run, library: Library, by_name: Mapping[str, Trained], rows: Iterable[Row]) -> list[Candidate]:
    """Return the candidates that were trained, the best first."""
    report = []
    for row in sorted(rows, key=lambda row: -row.mean):
        trained = by_name[row.objective]
        more = {name: value for name, value in trained.run.params.items() if name not in run.params}
        gap, se, p = (None if np.isnan(x) else x for x in (row.difference, row.difference_se, row.p))
        report.append(Candidate(row.objective, row.native, row.mean, library.rounds(trained.model), gap, se, p, more))
    return report


def as_ours(run: Run, library: Library, native: str) -> dict[str, Any]:
    """Return the parameters that a native objective needs for our defaults, without those in ``run``."""
    document = hessian_of(library.name, native, run.train.queries, run.n_threads)
    found: dict[str, Any] = {library.l2: DOCUMENTS * document}
    if library.least_hessian:
        found[library.least_hessian] = library.least_hessian_default * document
    found |= library.defaults(run.params)
    return {name: value for name, value in found.items() if not library.given(name, run.params)}
