"""The findings as text: problems first, each with the command to type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .findings import File, Findings, VariantState

_UNITS = ("B", "KB", "MB", "GB", "TB")


def lines(found: Findings) -> Iterator[str]:
    """Yield the lines of the report."""
    if not found.problems:
        yield "Everything fits this machine."
    for problem in found.problems:
        yield f"{'problem' if problem.fails else 'hint'}: {problem.text}"
        if problem.command:
            yield f"    {problem.command}"
    yield ""
    versions = found.versions
    yield from _rows("uv-variants", [str(versions.get("uv-variants", ""))])
    uv = versions.get("uv")
    tested = "" if versions.get("tested") else ", not tested"
    yield from _rows("uv", [f"{uv}{tested}, {versions['path']}" if uv else "not found"])
    facts = [f"{name}: {', '.join(texts)}" for name, texts in found.machine.items()]
    yield from _rows("machine", facts or ["nothing that variants are made for was found"])
    yield from _rows("environment", [found.environment or "none"])
    yield from _states(found.installed)
    yield from _rows("lock", [found.lock or "none"])
    yield from _states(found.locked)
    yield from _rows("index", [f"{name}: {url}" for name, url in found.indexes.items()])
    yield from _rows("not asked", [f"{name}: {why}" for name, why in found.unasked.items()])
    yield from _rows("proxy", [f"{name}: {text}" for name, text in found.proxy.items()])
    yield from _rows("file", [f"{file.what}: {file.path}" for file in found.files])
    yield from _rows("cache", [f"{file.what}: {file.path}, {_size(file)}" for file in found.caches])


def _rows(title: str, texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"{'' if number else title:<12} {text}"


def _states(states: Iterable[VariantState]) -> Iterator[str]:
    listed = list(states)
    width = max((len(f"{state.name} {state.version}") for state in listed), default=0)
    for state in listed:
        fits = {True: "fits", False: "does not fit", None: "not known"}[state.fits]
        text = f"  {f'{state.name} {state.version}':<{width}}  {state.label or '-'}: {fits}"
        text += f": {state.why}" if state.why else ""
        if not state.is_best:
            text += f"; now {state.best or 'none'}"
            text += f": {state.best_why}" if state.best_why else ""
        yield text


def _size(file: File) -> str:
    size = float(file.bytes or 0)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{'' if file.complete else 'more than '}{size:.{0 if unit == 'B' else 1}f} {unit}"
