"""``objective="auto"`` in an estimator: how it trains one candidate. The workbench chooses among them."""

from typing import TYPE_CHECKING, Any

from ltr_objectives.adapters._run import DOCUMENTS, Run
from ltr_objectives.errors import LTRError, essence, require
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective, get_objective
from ltr_objectives.objectives.typical import typical

if TYPE_CHECKING:
    from ltr_objectives.adapters._ranker import Ranker, Records
    from ltr_objectives.workbench.auto import Attempt, Decision

AUTO = "auto"


def train_best(ranker: "Ranker", run: Run) -> tuple[Any, "Records", Objective | str, "Decision"]:
    """Train each candidate as ``run`` says; return the model with the best metric on the last eval set.

    A native objective is trained at its library's defaults and with those of ours; the better of the two is kept.
    With the model come its records, its objective, and the report on all candidates.
    """
    from ltr_objectives.workbench import auto  # the one call of the library into the workbench

    require(run.evals, 'objective="auto" chooses on an eval_set; pass fit(..., eval_set=[(X, y)], eval_group=[...])')
    metric, part = run.metrics[0], run.evals[-1]
    if not isinstance(metric, Metric):
        raise LTRError(f'objective="auto" chooses by a metric of ours; name one before {metric!r}, such as "ndcg@10"')
    require(
        not run.callbacks,
        'callbacks= belong to one training, and objective="auto" runs several; leave them out, then train the chosen '
        "objective_ with them",
    )

    def attempt(candidate: Objective | str) -> "Attempt":
        own = trained(candidate, {})
        if not isinstance(candidate, str):
            return own
        ours = trained(candidate, as_ours(run, ranker.library, ranker.library.natives.get(candidate, "")))
        return max(own, ours, key=lambda each: metric.mean(part.queries, each.scores, n_threads=run.n_threads))

    def trained(candidate: Objective | str, more: dict[str, Any]) -> "Attempt":
        of_candidate = run._replace(objective=candidate, params={**more, **run.params})
        try:
            of_candidate.refuse_unread(ranker.library)
            model, records = ranker._train_run(of_candidate)
            scores = ranker._scores(model, part.X)
        except ranker.library.exception() as error:
            raise LTRError(essence(str(error))) from error
        return auto.Attempt((model, records, candidate), scores, ranker._rounds(model), more)

    data = f"eval_set[{len(run.evals) - 1}], by which objective='auto' chooses"
    best, report = auto.choose(ranker.library.name, metric, part.queries, attempt, data, run.n_threads)
    return *best, report


def as_ours(run: Run, library: Library, twin: str) -> dict[str, Any]:
    """The parameters that a native objective needs for the defaults of ours, without those in ``run``.

    L2 and least Hessian count documents of ``twin``, ours with the same Hessians; those of other objectives are 1.
    """
    document = typical(get_objective(twin), run.train.queries, run.n_threads).hessian if twin else 1.0
    found: dict[str, Any] = {library.l2: DOCUMENTS * document}
    if library.least_hessian:
        found[library.least_hessian] = library.least_hessian_default * document
    else:  # CatBoost
        found |= {"bootstrap_type": "Bernoulli" if "subsample" in run.params else "No", "random_strength": 0}
    return {name: value for name, value in found.items() if not library.given(name, run.params)}
