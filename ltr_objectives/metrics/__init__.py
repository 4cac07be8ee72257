"""Ranking metrics: value, and exact change when two documents trade places. One file a family."""
