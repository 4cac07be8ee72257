"""Ranking data: a small example, generated in the shape of MSLR-WEB, or read from tables and LETOR files."""

from ltr_objectives.workbench.data import (
    MSLR_SHARES,
    RankingData,
    RankingFold,
    from_table,
    load_letor,
    make_ranking,
    make_ranking_fold,
)
from ltr_objectives.workbench.example import load_example

__all__ = [
    "MSLR_SHARES",
    "RankingData",
    "RankingFold",
    "from_table",
    "load_example",
    "load_letor",
    "make_ranking",
    "make_ranking_fold",
]
