"""Tables of the JSON files that the benchmarks of speed write, for the terminal and for the documentation."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cells import write_whole
from benchmarks.provenance import provenance
from ltr_objectives.workbench.texts import pipe_table, signed

Document = dict[str, Any]
Lines = list[list[str]]  # the first is the head
NUMBER = re.compile(r"(more than )?[+-]?\d[\d,.]*( \(.+\))?")


def kernels(document: Document) -> Lines:
    """An iteration's gradients."""
    lines = [["gradients of", "against", "rows", "ours, ms", "its, ms", "its / ours"]]
    for r in document["results"]:
        times = [f"{r[key]:.{1 if r[key] < 10 else 0}f}" for key in ("ours_ms", "reference_ms")]
        lines.append([r["what"], r["against"], f"{r['rows']:,}", *times, f"{r['ratio']:.1f}"])
    return lines


def training(document: Document) -> Lines:
    """Whole trainings; ratios are medians, with their range, and milliseconds are those of a tree."""
    lines = [["library", "objective", "s: least, median", "times the library's own", "times its floor", "trees, ms",
              "interface, ms", "gradients, ms"]]  # fmt: skip
    for r in document["results"]:
        above = {base: _range(most) for base, most in r["over"].items()}
        own = "; ".join(f"{base} {text}" for base, text in list(above.items())[1:] if r["objective"] not in r["over"])
        took = f"{min(r['seconds']):.1f}, {np.median(r['seconds']):.1f}"
        floor = _range(r["over_floor"]) if "over_floor" in r else ""
        ms = {
            key: 1e3 * float(np.median(r[key])) / document["trees"]
            for key in ("seconds", "interface", "alone")
            if key in r
        }
        parts = [""] * 3
        if "interface" in ms:
            trees = ms.get("alone", ms["interface"])
            interface = f"{ms['interface'] - trees:.1f}" if "alone" in ms else "with the trees"
            parts = [f"{trees:.0f}", interface, f"{ms['seconds'] - ms['interface']:.1f}"]
        lines.append([r["library"], r["objective"], took, own, floor, *parts])
    return lines


def evaluation(document: Document) -> Lines:
    """Time of a metric in a training."""
    lines = [["library", "its metric", "training without, s", "its metric, ms a tree", "ours, ms a tree", "ours / its"]]
    for r in document["results"]:
        less = {key: np.array(r[key]) - np.array(r["none"]) for key in ("own", "ours")}
        ms = [f"{1e3 * float(np.median(less[key])) / document['trees']:.1f}" for key in ("own", "ours")]
        ratio = _range(np.quantile(less["ours"] / less["own"], (0, 0.5, 1)))
        lines.append([r["library"], r["metric"], f"{np.median(r['none']):.1f}", *ms, ratio])
    return lines


def _range(most: Any) -> str:
    return f"{most[1]:.2f} ({most[0]:.2f} to {most[2]:.2f})"


def scaling(document: Document) -> Lines:
    """Time and memory by rows."""
    threads = document["threads"]
    lines = [["gradients of", "rows", "ms", "times linear", f"1 thread / {threads} threads", "bytes a row"]]
    for r in document["results"]:
        ratios = f"{r['linear']:.2f}", f"{r['one_thread'] / r['seconds']:.2f}"
        lines.append(
            [r["objective"], f"{r['rows']:,}", f"{1e3 * r['seconds']:.1f}", *ratios, f"{r['bytes_a_row']:.0f}"]
        )
    return lines


def training_short(document: Document) -> Lines:
    """A line for each library: seconds with squared error, with its own objective for NDCG, and with ours."""
    lines = [["", "squared error", "the library's own", "ours"]]
    for library, title in {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}.items():
        found = {r["objective"]: np.median(r["seconds"]) for r in document["results"] if r["library"] == library}
        floor, own, *_ = found.values()
        lines.append([title, *(f"{seconds:.1f}" for seconds in (floor, own, found["yetiloss:ndcg"]))])
    return lines


def bags(document: Document) -> Lines:
    """NDCG of each arm minus that of one model, in thousandths, by data set and library."""
    libraries = list(dict.fromkeys(r["library"] for r in document["results"]))
    lines = [["data", "queries", "model", *libraries, "trees"]]
    arms: dict[tuple[str, str], dict[str, Any]] = {}
    for r in document["results"]:
        arms.setdefault((r["data"], r["arm"]), {})[r["library"]] = r
    for (data, arm), by in arms.items():
        if any(r["se"] for r in by.values()):  # all but the model that the others are compared with
            cells = [signed(1000 * by[each]["difference"], 1000 * by[each]["se"], 1) for each in libraries]
            trees = ", ".join(f"{by[each]['trees']:.0f}" for each in libraries if "trees" in by[each])
            lines.append([data, f"{max(r['queries'] for r in by.values()):,}", arm, *cells, trees])
    return lines


def ideas(document: Document) -> Lines:
    """NDCG of the choice on vali minus that without the idea, in thousandths, and of each arm over all data."""
    sets = list(dict.fromkeys(r["data"] for r in document["results"]))
    lines = [["idea", "library", *sets, "always, all data sets"]]
    by: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for r in document["results"]:
        cell = signed(1000 * r["difference"], 1000 * r["se"], 1)
        by.setdefault((r["idea"], r["library"]), {})[r["data"], r["arm"]] = cell
    for (idea, library), cells in sorted(by.items()):
        arms = "; ".join(f"{arm} {cell}" for (data, arm), cell in cells.items() if arm and data == sets[-1])
        lines.append([idea, library, *(cells.get((data, ""), "") for data in sets), arms])
    return lines


def startup(document: Document) -> Lines:
    """Time to the first gradient in new processes."""
    lines = [["objective", "first gradient, s", "the same, compiling, s"]]
    lines += [[r["objective"], f"{r['warm']:.2f}", f"{r['cold']:.2f}"] for r in document["results"]]
    return [*lines, ["(import alone)", f"{document['import']:.2f}", ""]]


def subsample(document: Document) -> Lines:
    """Trainings on a share of the queries in each iteration."""
    lines = [["library", "objective", "queries", document["metric"], "difference", "trees", "ms a tree", "of all"]]
    for r in document["results"]:
        gap = signed(r["difference"], r["se"]) if r["se"] else ""
        trees, took = f"{np.mean(r['trees']):.0f}", f"{1e3 * np.mean(r['seconds']):.0f}"
        cells = [f"{r['share']:g}", f"{r['value']:.4f}", gap, trees, took, f"{r['ratio']:.2f}"]
        lines.append([r["library"], r["objective"], *cells])
    return lines


def calibration(document: Document) -> Lines:
    """Ranking, and probabilities before and after isotonic regression."""
    pair = [("log_loss", "log loss"), ("brier", "Brier"), ("error", "ECE")]
    columns = [f"{name}, {when}" for when in ("raw", "isotonic") for _, name in pair]
    lines = [["library", "objective", "NDCG@10", "difference", *columns, "log loss difference"]]
    for r in document["results"]:
        numbers = [f"{r[when][key]:.4f}" for when in ("before", "after") for key, _ in pair]
        gaps = [signed(r[key], r[se]) if r[se] else ""
                for key, se in (("ndcg_difference", "ndcg_se"), ("log_loss_difference", "log_loss_se"))]  # fmt: skip
        lines.append([r["library"], r["objective"], f"{r['ndcg']:.4f}", gaps[0], *numbers, gaps[1]])
    of = document["constant"]
    constant = [f"{of['log_loss']:.4f}", f"{of['brier']:.4f}", "0"]
    return [*lines, ["", "share of relevant documents", "", "", *constant, *constant, ""]]


def neural(document: Document) -> Lines:
    """A batch's loss and gradients in PyTorch, a line for each objective."""
    batches = list(dict.fromkeys(r["batch"] for r in document["results"]))
    columns = [(batch, kind) for batch in batches for kind in ("metric", "loss")]
    lines = [["objective", *(f"{batch}, {kind}, ms" for batch, kind in columns)]]
    by: dict[str, dict[Any, str]] = {}
    for r in document["results"]:
        for kind in {"metric", "loss"} & set(r):
            by.setdefault(r["objective"], {})[r["batch"], kind] = f"{r[kind]:.{1 if r[kind] < 10 else 0}f}"
    return lines + [[name, *(cells.get(column, "") for column in columns)] for name, cells in by.items()]


def neural_rankers(document: Document) -> Lines:
    """NDCG on test in hundredths, with standard errors over queries and over seeds, by data set and loss."""
    models = list(dict.fromkeys(r["model"] for r in document["results"]))
    columns = [(model, metric) for model in models for metric in document["metrics"]]
    by: dict[tuple[str, str], dict[Any, str]] = {}
    for r in document["results"]:
        for metric in document["metrics"]:
            errors = [100 * r[metric][key] for key in ("se", "se of seeds") if r[metric][key]]
            cell = f"{100 * r[metric]['mean']:.1f} ({', '.join(f'{error:.1f}' for error in errors)})"
            by.setdefault((r["data"], r["loss"]), {})[r["model"], metric] = cell
    lines = [["data", "loss", *(f"{model}, {metric}" for model, metric in columns)]]
    return lines + [[*key, *(cells.get(column, "") for column in columns)] for key, cells in by.items()]


def distributed(document: Document) -> Lines:
    """Seconds, memory and quality of one process and of Dask workers."""
    metric = document["metric"]
    lines = [["objective", "trained in", "prepare, s", "train, s", "client, GiB", "each worker, GiB", metric]]
    for r in document["results"]:
        first, *others = (f"{gib:.2f}" for gib in r["memory"])
        seconds = f"{r['prepare']:.1f}", f"{r['train']:.1f}"
        lines.append([r["objective"], r["trained"], *seconds, first, " ".join(others), f"{r['value']:.4f}"])
    return lines


def large(document: Document) -> Lines:
    """Trainings on millions of rows beside squared error, the first of a library."""
    rows, floors = document["rows"], {r["library"]: r for r in reversed(document["results"])}
    lines = [["library", "objective", "s a tree", "times squared error", "peak, GiB", "while training, GiB",
              "bytes a row more than squared error"]]  # fmt: skip
    for r in document["results"]:
        floor = floors[r["library"]]
        took, least = (float(np.median(each["seconds"])) for each in (r, floor))
        more = "" if r is floor else f"{(r['training'] - floor['training']) / rows:.0f}"
        memory = (f"{most / 2**30:.2f}" for most in (max(r["before"], r["training"]), r["training"]))
        lines.append([r["library"], r["objective"], f"{took:.2f}", f"{took / least:.2f}", *memory, more])
    return lines


def panel(document: Document) -> Lines:
    """Very long queries; differences are from the first line."""
    lines = [["objective", "rank correlation", "difference", "NDCG@100", "difference", "processor, ms a tree"]]
    first = document["results"][0]
    for r in document["results"]:
        cells = []
        for metric in ("spearman", "ndcg@100"):
            gap = signed(r[metric] - first[metric], r[f"{metric} se"]) if r is not first else ""
            cells += [f"{r[metric]:.4f}", gap]
        lines.append([r["training"], *cells, f"{r['ms_a_tree']:.0f}"])
    return lines


def long_lists(document: Document) -> Lines:
    """Processor time of single lists by their length, and memory at the largest length that was run."""
    by: dict[str, dict[int, dict[str, Any]]] = {}
    for r in document["long"]:
        by.setdefault(r["objective"], {})[r["rows"]] = r
    sizes = list(next(iter(by.values())))
    lines = [["one list", *(f"{rows:,} documents, s" for rows in sizes), "bytes a row"]]
    for name, found in by.items():
        cells = [f"{'' if r['bytes_a_row'] is not None else 'more than '}{_few(r['seconds'])}" for r in found.values()]
        memory = [r["bytes_a_row"] for r in found.values() if r["bytes_a_row"] is not None]
        lines.append([name, *cells, f"{memory[-1]:.0f}"])
    return lines


def _few(seconds: float) -> str:
    """Seconds to two digits, without an exponent.

    >>> _few(0.0000123), _few(0.456), _few(12.3), _few(4567.8)
    ('0.000012', '0.46', '12', '4,600')
    """
    rounded = float(f"{seconds:.2g}")
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"


TABLES: dict[str, Callable[[Document], Lines]] = {
    "bags": bags, "ideas": ideas, "kernels": kernels, "training": training, "training/short": training_short,
    "evaluation": evaluation, "scaling": scaling, "startup": startup,
    "subsample": subsample, "calibration": calibration, "distributed": distributed, "neural": neural,
    "neural_rankers": neural_rankers, "panel": panel, "scaling/long": long_lists, "large": large,
}  # fmt: skip


def numeric(lines: Lines) -> list[bool]:
    """The columns of numbers, which may have a sign, and an error or a range in brackets."""
    return [all(NUMBER.fullmatch(cell) for cell in column if cell) for column in zip(*lines[1:], strict=True)]


def printed(lines: Lines) -> Table:
    """The table for the terminal."""
    table = Table()
    for name, right in zip(lines[0], numeric(lines), strict=True):
        table.add_column(name, justify="right" if right else "left")
    for line in lines[1:]:
        table.add_row(*line)
    return table


def save(name: str, document: Document, out: Path, console: Console) -> None:
    """Print the table called ``name``; write the document, with the command and the versions, to ``name.json``."""
    console.print(printed(TABLES[name](document)))
    path = out / f"{name}.json"
    write_whole(path, {**provenance(), **document}, indent=1)
    console.print(f"written: {path}")


def markdown(lines: Lines) -> str:
    """The table as Markdown, for README and documentation."""
    return pipe_table(lines, numeric(lines))
