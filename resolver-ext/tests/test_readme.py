"""The example of the README prints the package that it resolves."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_over_real_indexes(tmp_path):
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("demo-1.0.dist-info/METADATA", "Name: demo\nVersion: 1.0\n")
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    sources = f"Sources(find_links=({str(tmp_path)!r},), no_index=True)"
    script = tmp_path / "example.py"
    script.write_text(code.replace("Sources()", sources))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=os.environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"demo 1.0 None {wheel.as_uri()} \n"), done.stderr
