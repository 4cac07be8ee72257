"""``objective="auto"`` in an estimator: how it trains one candidate. The workbench chooses among them."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ltr_objectives.adapters._parameters import with_gain
from ltr_objectives.adapters._ranker_plan import Plan, check_plan, in_documents
from ltr_objectives.errors import LTRError, essence, require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective

if TYPE_CHECKING:
    from ltr_objectives.adapters._ranker import Ranker, Records
    from ltr_objectives.workbench.auto import Attempt, Decision

AUTO = "auto"


class Choice(NamedTuple):
    """The choice of a contest, beside its model."""

    objective: Objective | str
    records: "Records"
    report: "Decision"


def choose(ranker: "Ranker", plan: Plan) -> Choice:
    """Train each candidate as ``plan`` says; the ranker gets the model with the best metric on the last eval set."""
    from ltr_objectives.workbench.auto import Attempt, choose  # the one call of the library into the workbench

    require(plan.evals, 'objective="auto" chooses on an eval_set; pass fit(..., eval_set=[(X, y)], eval_group=[...])')
    metric, part = plan.metrics[0], plan.evals[-1]
    if not isinstance(metric, Metric):
        raise LTRError(f'objective="auto" chooses by a metric of ours; name one before {metric!r}, such as "ndcg@10"')
    require(
        not plan.callbacks,
        'callbacks= belong to one training, and objective="auto" runs several; leave them out, then train the chosen '
        "objective_ with them",
    )

    def attempt(objective: Objective | str) -> "Attempt":
        objective = with_gain(ranker.library, plan.params, objective, needed=False)
        each = plan._replace(objective=in_documents(objective))
        try:
            check_plan(each, ranker.library)
            ranker.booster_, records = ranker._train_plan(each)
            scores: Any = ranker._scores(part.X)
        except ranker.library.exception() as error:
            raise LTRError(essence(str(error))) from error
        return Attempt((ranker.booster_, objective, records), scores, ranker.best_iteration_)

    data = f"eval_set[{len(plan.evals) - 1}], by which objective='auto' chooses"
    (ranker.booster_, objective, records), report = choose(
        ranker.library.name, metric, part.queries, attempt, data, plan.n_threads
    )
    return Choice(objective, records, report)
