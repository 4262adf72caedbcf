"""`python -m selector record`: renew the record from the real indexes."""

from __future__ import annotations

import sys

from . import record

if sys.argv[1:] != ["record"]:
    sys.exit("usage: python -m selector record")
record.write_record(record.renewed(lambda text: print(text, file=sys.stderr)))
