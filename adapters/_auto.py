"""``objective="auto"`` in an estimator: how it trains one candidate. The workbench chooses among them."""

from typing import TYPE_CHECKING, Any

from ltr_objectives.adapters._ranker_plan import DOCUMENTS, Plan, check_plan, in_documents
from ltr_objectives.errors import LTRError, essence, require
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective, get_objective
from ltr_objectives.objectives.typical import typical

if TYPE_CHECKING:
    from ltr_objectives.adapters._ranker import Ranker, Records
    from ltr_objectives.workbench.auto import Attempt, Decision

AUTO = "auto"


def train_best(ranker: "Ranker", plan: Plan) -> tuple[Objective | str, "Records", "Decision"]:
    """Train each candidate as ``plan`` says; the ranker gets the model with the best metric on the last eval set.

    A native objective is trained at its library's defaults and with those of ours; the better of the two is kept.
    Returns the objective of this model, its records, and the report on all candidates.
    """
    from ltr_objectives.workbench import auto  # the one call of the library into the workbench

    require(plan.evals, 'objective="auto" chooses on an eval_set; pass fit(..., eval_set=[(X, y)], eval_group=[...])')
    metric, part = plan.metrics[0], plan.evals[-1]
    if not isinstance(metric, Metric):
        raise LTRError(f'objective="auto" chooses by a metric of ours; name one before {metric!r}, such as "ndcg@10"')
    require(
        not plan.callbacks,
        'callbacks= belong to one training, and objective="auto" runs several; leave them out, then train the chosen '
        "objective_ with them",
    )

    def attempt(candidate: Objective | str) -> "Attempt":
        own = trained(candidate, {})
        if not isinstance(candidate, str):
            return own
        twin = ranker.library.natives.get(candidate, "")
        ours = trained(candidate, as_ours(plan, ranker.library, twin))
        return max(own, ours, key=lambda each: metric.mean(part.queries, each.scores, n_threads=plan.n_threads))

    def trained(candidate: Objective | str, more: dict[str, Any]) -> "Attempt":
        of_candidate = plan._replace(objective=in_documents(candidate), params={**more, **plan.params})
        try:
            check_plan(of_candidate, ranker.library)
            ranker.booster_, records = ranker._train_known(of_candidate)
            scores = ranker._scores(part.X)
        except ranker.library.exception() as error:
            raise LTRError(essence(str(error))) from error
        return auto.Attempt((ranker.booster_, candidate, records), scores, ranker.best_iteration_, more)

    data = f"eval_set[{len(plan.evals) - 1}], by which objective='auto' chooses"
    best, report = auto.choose(ranker.library.name, metric, part.queries, attempt, data, plan.n_threads)
    ranker.booster_, objective, records = best
    return objective, records, report


def as_ours(plan: Plan, library: Library, twin: str) -> dict[str, Any]:
    """The parameters that a native objective needs for the defaults of ours, without those in ``plan``.

    L2 and least Hessian count documents of ``twin``, ours with the same Hessians; those of other objectives are 1.
    """
    document = typical(get_objective(twin), plan.train.queries, plan.n_threads).hessian if twin else 1.0
    found: dict[str, Any] = {library.l2: DOCUMENTS * document}
    if library.least_hessian:
        found[library.least_hessian] = library.least_hessian_default * document
    else:  # CatBoost
        found |= {"bootstrap_type": "Bernoulli" if "subsample" in plan.params else "No", "random_strength": 0}
    return {name: value for name, value in found.items() if not library.given(name, plan.params)}
