"""All rankings of a list under the Plackett-Luce model."""

import itertools

import numpy as np


def exact_rankings(scores, ranks):
    """All rankings of the first ``ranks`` documents and their probabilities."""
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
