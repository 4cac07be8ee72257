"""Ranking objectives: gradient and Hessian of a loss over the scores of each query."""
