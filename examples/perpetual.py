"""Perpetual, trained for a ranking metric.

Perpetual chooses the step of each tree by a loss of each row. Rankings do not have one, so it gets the quadratic whose
minimum is the Newton step, (g + h d)^2 / (2 h), where d is the change of the score by the tree. Make new functions for
each training. An error in one of them ends the process. ``stopping_rounds=20`` helps an objective that Perpetual stops
after a few trees. ``prune`` is not possible, because it calls the loss for single rows.
"""

import numpy as np

from ltr_objectives import Queries, evaluate, get_objective
from ltr_objectives.datasets import load_example


def perpetual_functions(objective, y, group, weight=None):
    """Return loss, gradient and initial value for ``PerpetualBooster(objective=...)``."""
    objective, queries = get_objective(objective), Queries(y, group, weight=weight)
    before, iteration = [np.zeros(len(y))] * 3, 0  # scores, gradient and Hessian before the tree that is grown

    def gradient(y, scores, weight, group):
        nonlocal before, iteration
        grad, hess = objective.compute(queries, scores, iteration=iteration)
        before, iteration = [np.array(scores), grad, np.maximum(hess, 1e-8)], iteration + 1
        return grad.astype(np.float32), hess.astype(np.float32)

    def loss(y, scores, weight, group):
        start, grad, hess = before
        return ((grad + hess * (scores - start)) ** 2 / (2 * hess)).astype(np.float32)

    return loss, gradient, lambda y, weight, group: 0.0


if __name__ == "__main__":
    from perpetual import PerpetualBooster

    train, _, test = load_example()
    booster = PerpetualBooster(objective=perpetual_functions("yetiloss", train.y, train.group))
    booster.fit(train.X.astype(float), train.y.astype(float))
    print(evaluate("ndcg@10", booster.predict(test.X.astype(float)), test.y, test.group))
