"""Ranking metrics: value, and exact change when two documents are swapped. One file a family."""
