"""The code of the page on neural rankers runs and prints what the page has."""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def test_the_page():
    names: dict[str, object] = {}
    blocks = BLOCK.findall((Path(__file__).parents[2] / "docs" / "neural.md").read_text())
    assert len(blocks) == 3
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == expected
