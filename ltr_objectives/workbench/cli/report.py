"""``ltr-objectives report``: which queries of a data set have a gradient."""

from typing import Any

from typer import echo

from ltr_objectives.workbench.cli.options import (
    AsJson,
    Label,
    Labels,
    Letor,
    ObjectiveName,
    Qid,
    Scores,
    print_json,
    refuse_goals,
)


def report(
    objective: ObjectiveName = "yetiloss:ndcg@10",
    labels: Labels = None,
    scores: Scores = None,
    qid: Qid = None,
    data: Letor = None,
    label: Label = "label",
    as_json: AsJson = False,
) -> None:
    """Print which queries have a gradient under an objective.

    The others are counted by reason. Pass labels and query ids as separate files, or a LETOR, Parquet or CSV file.
    Without --scores all scores are 0, as before the first tree.
    """
    from ltr_objectives.registry import get_objective
    from ltr_objectives.workbench.cli.files import read_lists
    from ltr_objectives.workbench.tables import Columns

    asked: Any = get_objective(objective)
    refuse_goals("objective", asked.goals)
    lists = read_lists(data, labels, scores, qid, Columns(label))
    found = asked.report(lists.scores, lists.queries.labels, lists.group)
    if as_json:
        print_json(found.as_dict())
    else:
        echo(str(found))
