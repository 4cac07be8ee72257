"""``ltr-objectives predict``: scores of the rows of a LETOR file."""

from io import BytesIO
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option, echo

from ltr_objectives.cli.libraries import FACTS, Library, ranker_of
from ltr_objectives.cli.options import AsJson, console, print_json
from ltr_objectives.errors import require


def predict(
    model: Annotated[Path, Option(metavar="FILE", help="The model, in the format that train writes.")],
    data: Annotated[Path, Option(metavar="FILE", help="LETOR text; its labels are not used.")],
    out: Annotated[Path, Option(metavar="FILE", help="The scores: .npy, or .txt with one a line.")],
    library: Annotated[
        Library | None,
        Option(metavar="NAME", help="Needed where the ending of the model does not show it.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score the rows of a LETOR file with a trained model.

    There is one score for each row, in the order of the rows. A feature that the file does not have is 0, since LETOR
    text leaves zeros out. A feature that the model does not have was 0 in its training, and is not used.
    """
    from ltr_objectives._files import replacing
    from ltr_objectives.cli.files import existing, read_letor, require_apart, writable

    by_ending = (name for name, facts in FACTS.items() if model.suffix in facts.endings)
    name = library.value if library else next(by_ending, "")
    require(name, f"--model {model}: its ending does not show which library wrote it; pass --library")
    existing("model", model)
    require_apart(out, model, data)
    writable(out, (".npy", ".txt"), "scores")
    found = read_letor("data", data)
    with ranker_of(name) as ranker_class:
        ranker = ranker_class().load_model(model)
        features, width = ranker.n_features_in_, found.X.shape[1]
        X = np.pad(found.X[:, :features], ((0, 0), (0, max(0, features - width))))
        scores = ranker.predict(X).astype(np.float64)
    require(scores.ndim == 1, f"--model {model} has several outputs a row; a ranker has one")
    with replacing(out) as new:
        if out.suffix == ".npy":
            content = BytesIO()  # on a full disk np.save to a file loses the end without an error
            np.save(content, scores)
            new.write_bytes(content.getvalue())
        else:
            np.savetxt(new, scores, "%.17g")
    trees, queries = ranker.best_iteration_, len(found.group)
    does = "those beyond are left out" if width > features else "those missing are 0"
    notes = [f"the model has {features} features, the data {width}: {does}"] if width != features else []
    if as_json:
        print_json(
            {
                "library": name, "model": str(model), "trees": trees, "rows": len(scores), "queries": queries,
                "scores": str(out), "notes": notes,
            }
        )  # fmt: skip
        return
    line = f"{name}, {trees} trees: {len(scores):,} rows in {queries:,} queries, scores written to {out}"
    console().print(line, markup=False, soft_wrap=True)
    for note in notes:
        echo(f"note: {note}", err=True)
