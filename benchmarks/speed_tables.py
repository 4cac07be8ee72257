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
from ltr_objectives.workbench.texts import pipe_table

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


def startup(document: Document) -> Lines:
    """Time to the first gradient in new processes."""
    lines = [["objective", "first gradient, s", "the same, compiling, s"]]
    lines += [[r["objective"], f"{r['warm']:.2f}", f"{r['cold']:.2f}"] for r in document["results"]]
    return [*lines, ["(import alone)", f"{document['import']:.2f}", ""]]


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
    "kernels": kernels, "training": training, "training/short": training_short, "evaluation": evaluation,
    "scaling": scaling, "scaling/long": long_lists, "startup": startup, "large": large,
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
