"""All rankings of a list under the Plackett-Luce model, and PL-Rank's kernels with them instead of drawn ones."""

import itertools

import numpy as np

from ltr_objectives.kernels import expected_reward
from ltr_objectives.kernels.exponential import WIDEST_SQUARED
from ltr_objectives.kernels.plackett_luce import place_narrow, place_wide, table_of
from ltr_objectives.kernels.records import Rng


def exact_rankings(scores, ranks):
    """Return all rankings of the first ``ranks`` documents and their probabilities."""
    rankings, probabilities = [], []
    for y in itertools.permutations(range(len(scores)), ranks):
        p = 1.0
        for i in range(ranks):
            rest = [d for d in range(len(scores)) if d not in y[:i]]
            e = np.exp(scores[rest] - scores[rest].max())
            p *= e[rest.index(y[i])] / e.sum()
        rankings.append(y)
        probabilities.append(p)
    return np.array(rankings, np.int64), np.array(probabilities)


def shares_of(ranking, s, wide):
    """Return numbers between 0 and 1 that draw ``ranking`` from the scores ``s``, if it is not too rare."""
    shares, open_ = [], np.ones(len(s), bool)
    for i in ranking:
        top = int(open_.argmax())
        mass = np.exp(np.minimum(s - s[top], 0.0))
        if wide:  # the open documents, from the first on
            before, total = mass[:i][open_[:i]].sum(), mass[open_].sum()
        else:  # documents from the last one to the first open one
            before, total = mass[i + 1 :].sum(), mass[top:].sum()
        shares.append((before + mass[i] / 2) / total)
        open_[i] = False
    return np.array(shares)


def enumerated(objective):
    """Return PL-Rank of one list, with the mean over all rankings instead of drawn ones."""

    class Enumerated(type(objective)):
        def _run(self, call, reward, scale, curvature):
            theta, n = self.theta(len(reward)), len(reward)
            order = np.argsort(-call.scores, kind="stable")
            s, unit = call.scores[order], 1.0 if curvature == expected_reward.EXPOSURE else np.ptp(reward)
            if n < 2 or unit == 0 or not len(theta):
                return
            rankings, probabilities = exact_rankings(s, len(theta))
            zero = np.uint64(0)
            how = expected_reward.Inputs(reward, scale, theta, curvature, Rng(zero, zero, len(rankings)))
            r = expected_reward.scratch_for(n, how)
            x = expected_reward.ByScore(s, (reward[order] - reward.min()) / unit, np.zeros(n), np.zeros(n))
            _add_rankings(rankings, probabilities, how, x, r)
            call.grad[order] = -scale * unit * x.grad
            call.hess[order] = x.hess if curvature == expected_reward.EXPOSURE else -scale * unit * x.hess

    return Enumerated(**objective.settings())


def _add_rankings(rankings, probabilities, how, x, r):
    """Add all rankings as the kernels do, each with its probability."""
    placed, wide = r.placed, x.s[0] - x.s[-1] >= WIDEST_SQUARED
    table = None if wide else table_of(x.s)
    placed.shrink[:] = 1.0
    for j, (ranking, p) in enumerate(zip(rankings, probabilities, strict=True)):
        r.sums[j], r.open_mass[j] = 0.0, 0.0
        placed.u[:] = shares_of(ranking, x.s, wide)
        if wide and p < 1e-14:  # double precision has no share that draws it
            continue
        unit = place_wide(x.s, placed) if wide else place_narrow(table, np.uint64(0), 0, placed)
        assert np.array_equal(placed.y, ranking)
        expected_reward.add_ranking(how, x, placed, p, r.sums[j])
        if wide:
            expected_reward.add_beyond(how, x.s, x, placed, p, unit, r.sums[j])
        else:
            expected_reward.subtract_placed(how, x, placed, p, j, r)
    if not wide:
        expected_reward.add_open(how, x, table.mass, r)
