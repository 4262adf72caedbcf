"""What ``uv export`` and ``uv pip compile`` write, for readers who have no uv-variants.

uv names variant wheels as it was shown them: one of each version, at ``….variant/<label>/<name>``.
Exports name the files of the index instead, of every label that the exported dependencies are
right for, with their hashes. All else stays as uv wrote it, byte for byte.
"""

from .command import ExportCommand
from .exported_files import ExportedFiles

__all__ = ["ExportCommand", "ExportedFiles"]
