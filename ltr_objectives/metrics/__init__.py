"""Ranking metrics: their gains, discounts and conventions, from which kernels compute values and exact changes."""
