"""The hash of the source files at the import, which machine code is kept under."""

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = "kernels", "metrics", "objectives"  # of the files that compiled code can come from


def source_hash(package: Path = PACKAGE) -> str | None:
    """Hash every source file that compiled code can come from; return None without such files, as in a zip file."""
    files = [path for folder in FOLDERS for path in sorted((package / folder).glob("[a-z_]*.py"))]
    digest = hashlib.sha256(b"".join(path.name.encode() + b"\0" + path.read_bytes() for path in files))
    return digest.hexdigest()[:16] if files else None


AT_IMPORT = source_hash()
