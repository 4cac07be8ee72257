"""``ltr-objectives report``: which queries of a data set have a gradient."""

from typing import Any

from typer import echo

from ltr_objectives.workbench.cli import options


def report(
    objective: options.ObjectiveName = "yetiloss:ndcg@10",
    labels: options.Labels = None,
    scores: options.Scores = None,
    qid: options.Qid = None,
    data: options.Letor = None,
    label: options.Label = "label",
    as_json: options.AsJson = False,
) -> None:
    """Print which queries have a gradient under an objective.

    The others are counted by reason. Pass labels and query ids as separate files, or a LETOR, Parquet or CSV file.
    Without --scores all scores are 0, as before the first tree.
    """
    from ltr_objectives.registry import get_objective
    from ltr_objectives.workbench.cli.files import read_lists
    from ltr_objectives.workbench.tables import Columns

    asked: Any = get_objective(objective)
    options.refuse_goals("objective", asked.goals)
    lists = read_lists(data, labels, scores, qid, Columns(label))
    found = asked.report(lists.scores, lists.queries.labels, lists.group)
    if as_json:
        options.print_json(found.as_dict())
    else:
        echo(str(found))
