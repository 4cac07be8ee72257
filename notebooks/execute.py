"""Run the notebooks and write them with their outputs: ``python notebooks/execute.py [NAME ...]``."""

import argparse
import base64
import os
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

from ltr_objectives._files import replacing

HERE = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def execute(notebook: Any, timeout: int = 1200) -> Any:
    """Run every cell in a fresh kernel of this interpreter, in the folder of the notebooks; returns the notebook."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # several libraries with threads share one process
    client = NotebookClient(
        notebook, timeout=timeout, kernel_name="python3", record_timing=False,
        resources={"metadata": {"path": str(HERE)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # or it warns of its connection, within this machine
    )  # fmt: skip
    client.execute()
    return tidy(notebook)


def tidy(notebook: Any) -> Any:
    """Leave out what differs from machine to machine and run to run, and what makes the file large."""
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for i, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{i:02}"
        cell.metadata = {"tags": cell.metadata["tags"]} if "tags" in cell.metadata else {}
        for data in (output["data"] for output in cell.get("outputs", ()) if "data" in output):
            if "image/png" in data:
                data["image/png"] = smaller(data["image/png"])
            if len(data) > 1:
                del data["text/plain"]
    return notebook


def smaller(picture: str) -> str:
    """Return a PNG in base64 with 32 colours."""
    written = BytesIO()
    with Image.open(BytesIO(base64.b64decode(picture))) as image:
        image.convert("RGB").quantize(32, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return base64.b64encode(written.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="by default all of them")
    names = parser.parse_args().names or sorted(path.stem for path in HERE.glob("*.ipynb"))
    for name in names:
        path, start = HERE / f"{Path(name).stem}.ipynb", time.perf_counter()
        notebook = execute(nbformat.read(path, as_version=4))
        with replacing(path) as new:
            nbformat.write(notebook, new)
        print(f"{path.name}: {time.perf_counter() - start:.0f} seconds, {path.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
