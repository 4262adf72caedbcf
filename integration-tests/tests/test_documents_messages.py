"""The messages that the reference explains still occur in the sources."""

from __future__ import annotations

import ast
import re

from support.environments import ROOT

PAGE = ROOT / "docs" / "reference" / "messages.md"
ROW = re.compile(r"^\| `([^`]+)` \| .+ \| .+ \|$", re.MULTILINE)
PLACEHOLDER = re.compile(r"…|\b(?!CUDA|NVIDIA|AMD|ROCM_PATH|PEP|HTTP|API|SSL_CERT_FILE)[A-Z]{3,}\b")


def test_explained_messages_occur():
    texts = []
    for pattern in ("packages/*/src/**/*.py", "pip-patch/src/**/*.py", "resolver-ext/src/**/*.py"):
        for path in ROOT.glob(pattern):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(" ".join(node.value.split()))
    sources = "\n".join(texts)
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert len(rows) > 20
    for message in rows:
        longest = max(PLACEHOLDER.split(message), key=len)
        assert longest.strip(" :,;()") in sources, message
