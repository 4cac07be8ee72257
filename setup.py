"""Machine code in the wheel, and a README whose links lead somewhere: beyond what pyproject.toml can say.

A wheel has the machine code of all kernels, for one version of Python and numba. ``NUMBA_CPU_NAME=x86-64-v3`` with an
empty ``NUMBA_CPU_FEATURES``, or ``NUMBA_CPU_NAME=generic``, compiles for other machines than this one.

The variable ``REPOSITORY_URL`` is the address of the repository; without it links stay relative. ``SITE_URL`` is the
address of the documentation. The release sets both.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
RELATIVE = re.compile(r"(!?\[[^\]]*\]\()(?!\w+:|#)([^)\s]+\))")


class ForOnePlatform(Distribution):
    """A distribution whose wheels are for one platform and one version of Python."""

    def has_ext_modules(self) -> bool:
        return True


class WithMachineCode(build_py):
    """Copy the modules, and compile their kernels beside them."""

    def run(self) -> None:
        folder = Path(self.build_lib).resolve()
        if not self.editable_mode:  # files of an earlier build, which may be gone or newer than their source
            shutil.rmtree(folder / "ltr_objectives", ignore_errors=True)
        super().run()
        if self.editable_mode:
            return
        path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        environment = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run(
            [sys.executable, "-m", "ltr_objectives.warmup"], env=os.environ | environment, cwd=folder, check=True
        )


def absolute(text: str, address: str, version: str) -> str:
    """The README ``text`` with links to the files of ``version`` in the repository at ``address``."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}{address}/{kind}/v{version}/{match[2]}"

    return RELATIVE.sub(link, text)


def described(address: str, site: str) -> dict[str, object]:
    """The README and the addresses of the project, as metadata."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "(.+)"', (ROOT / "ltr_objectives" / "__init__.py").read_text(encoding="utf-8"))
    if address and found:
        address, text = address.rstrip("/"), absolute(text, address.rstrip("/"), found[1])
    changelog = f"{address}/blob/main/CHANGELOG.md"
    return {
        "long_description": text,
        "long_description_content_type": "text/markdown",
        "project_urls": {
            **({"Documentation": site} if site else {}),
            **({"Source": address, "Issues": f"{address}/issues", "Changelog": changelog} if address else {}),
        },
    }


if __name__ == "__main__":
    setup(
        distclass=ForOnePlatform,
        cmdclass={"build_py": WithMachineCode},
        **described(os.environ.get("REPOSITORY_URL", ""), os.environ.get("SITE_URL", "")),
    )
