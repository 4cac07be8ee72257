"""Ranking metrics: their values, and their exact changes when two documents are swapped or one document moves."""
