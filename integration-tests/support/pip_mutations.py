"""Ways in which a pip of tomorrow may do what the shim relies on, as changes of its sources.

Names and parameters stay as they are: what changes is a shape, who calls how, or in which thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .environments import Environment
from .pip_seams import replace_file

FACTORY = "_internal/resolution/resolvelib/factory.py"
FOUND = "_internal/resolution/resolvelib/found_candidates.py"
CANDIDATES = "_internal/resolution/resolvelib/candidates.py"
PREPARE = "_internal/operations/prepare.py"
FINDER = "_internal/index/package_finder.py"
RESOLVELIB = "_vendor/resolvelib/**/res*.py"

_PARTIAL = r"functools\.partial\(\s*self\._make_candidate_from_link,"
_END = r"\Z"
_FOR = r"for version, func in infos:"
_IN_THREAD = """

def _in_thread(function, *args):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()
"""

Change = tuple[str, str, str]
"""A file below ``pip``, maybe a pattern; a regular expression; what stands there instead."""

MUTATIONS: Mapping[str, tuple[Change, ...]] = {
    "candidate infos with a closure": (
        (FACTORY, _PARTIAL, "_closed(self._make_candidate_from_link,"),
        (FACTORY, _END, "\n\ndef _closed(made, **given):\n    return lambda: made(**given)\n"),
    ),
    "candidate infos with a bound method": (
        (FACTORY, _PARTIAL, "_Bound(self._make_candidate_from_link,"),
        (
            FACTORY,
            _END,
            "\n\nclass _Bound:\n    def __init__(self, made, **given):\n"
            "        self.made, self.given = made, given\n\n"
            "    def __call__(self):\n        return self.made(**self.given)\n",
        ),
    ),
    "candidate infos with a partial by position": (
        (
            FACTORY,
            rf"{_PARTIAL}(\s*)link=(.*?)extras=(.*?)template=(.*?)name=(.*?)version=",
            r"functools.partial(self._make_candidate_from_link,\1\2\3\4\5",
        ),
    ),
    "candidate infos as named tuples": (
        (FACTORY, r"yield ican\.version, func", "yield _Info(ican.version, func)"),
        (FACTORY, _END, "\n\nfrom collections import namedtuple as n\n_Info = n('_', 'v f')\n"),
        (FOUND, _FOR, "for info in infos:\n        version, func = info.v, info.f"),
    ),
    "candidate infos as dataclasses": (
        (FACTORY, r"yield ican\.version, func", "yield _Info(ican.version, func)"),
        (
            FACTORY,
            _END,
            "\n\nimport dataclasses\n\n\n@dataclasses.dataclass\nclass _Info:\n"
            "    v: object\n    f: object\n",
        ),
        (FOUND, _FOR, "for info in infos:\n        version, func = info.v, info.f"),
    ),
    "candidate infos of three": (
        (FACTORY, r"yield ican\.version, func", "yield ican.version, func, None"),
        (FOUND, _FOR, "for version, func, _ in infos:"),
    ),
    "candidate infos in a list": (
        (
            FACTORY,
            r"(FoundCandidates\(\s*)iter_index_candidate_infos,",
            r"\1lambda: [*iter_index_candidate_infos()],",
        ),
    ),
    "candidate infos not in a function": (
        (
            FACTORY,
            r"(FoundCandidates\(\s*)iter_index_candidate_infos,",
            r"\1[*iter_index_candidate_infos()],",
        ),
        (FOUND, r"self\._get_infos\(\)", "iter(self._get_infos)"),
    ),
    "found candidates by name": (
        (FACTORY, r"(FoundCandidates\(\s*)iter_index", r"\1get_infos=iter_index"),
        (FACTORY, r"(\s)(_get_installed_candidate\(\),)", r"\1installed=\2"),
        (FACTORY, r"(\s)prefers_installed,(\s*)incompatible_ids,(?=\s*\)\n\n)",
         r"\1prefers_installed=prefers_installed,\2incompatible_ids=incompatible_ids,"),
    ),
    "is_satisfied_by by position": (
        (RESOLVELIB, r"is_satisfied_by\(requirement=r, candidate=", "is_satisfied_by(r, "),
    ),
    "is_satisfied_by by name": (
        (FACTORY, r"is_satisfied_by\(req, c\)", "is_satisfied_by(requirement=req, candidate=c)"),
    ),
    "get_dependencies by position": (
        (RESOLVELIB, r"get_dependencies\(candidate=candidate\)", "get_dependencies(candidate)"),
    ),
    "find_matches by position": (
        (
            RESOLVELIB,
            r"(find_matches\(\s*)identifier=(.*?)requirements=(.*?)incompatibilities=",
            r"\1\2\3",
        ),
    ),
    "find_best_candidate by position": (
        (
            FACTORY,
            r"project_name=name,(\s*)specifier=specifier,(\s*)hashes=hashes,",
            r"name,\1specifier,\2hashes,",
        ),
    ),
    "resolve by name": (
        ("_internal/commands/install.py", r"(resolver\.resolve\(\s*)reqs,", r"\1root_reqs=reqs,"),
    ),
    "metadata files in a thread": (
        (PREPARE, r"return self\._fetch_metadata_using_link_data_attr\(\s*req\s*\)",
         "return _in_thread(self._fetch_metadata_using_link_data_attr, req)"),
        (PREPARE, _END, _IN_THREAD),
    ),
    "wheels in a thread": (
        (PREPARE, r"dist = _get_prepared_distribution\(",
         "dist = _in_thread(_get_prepared_distribution,"),
        (PREPARE, _END, _IN_THREAD),
    ),
    "files in a thread": (
        (PREPARE, r"return self\._prepare_linked_requirement\(req, parallel_builds\)",
         "return _in_thread(self._prepare_linked_requirement, req, parallel_builds)"),
        (PREPARE, _END, _IN_THREAD),
    ),
    "pages in a thread": (
        (FINDER, r"(package_links = )self\.evaluate_links\((\s*)link_evaluator,(\s*)links=",
         r"\1_in_thread(self.evaluate_links,\2link_evaluator,\3"),
        (FINDER, _END, _IN_THREAD),
    ),
    "candidates in a thread": (
        (FINDER, r"(candidates = )self\.find_all_candidates\(project_name\)",
         r"\1_in_thread(self.find_all_candidates, project_name)"),
        (FINDER, _END, _IN_THREAD),
    ),
    "candidates in a tuple": (
        (FINDER, r"( = |return )(file_candidates \+ page_candidates)", r"\1tuple(\2)"),
    ),
    "source_link as a method": (
        (CANDIDATES, r"    @property\n(    def source_link)", r"\1"),
        ("_internal/resolution/resolvelib/[br]*.py", r"candidate\.source_link\b",
         "candidate.source_link()"),
        ("_internal/resolution/resolvelib/base.py", r"    @property\n(    def source_link)", r"\1"),
    ),
    "index_urls as a method": (
        (FINDER, r"    @property\n(    def index_urls)", r"\1"),
        ("_internal/req/req_file.py", r"= finder\.index_urls\b", "= finder.index_urls()"),
        ("_internal/build_env*/*.py", r"= finder\.index_urls\b", "= finder.index_urls()"),
        ("_internal/build_env.py", r"= finder\.index_urls\b", "= finder.index_urls()"),
    ),
}  # fmt: skip
"""What is done otherwise, and where."""


def mutate(environment: Environment, name: str) -> bool:
    """Change the pip of *environment*; return whether it can be changed so."""
    pip, changed = environment.site_packages / "pip", set()
    for pattern, expression, replacement in MUTATIONS[name]:
        for path in sorted(pip.glob(pattern)):
            text = path.read_text("utf-8")
            if replace_file(path, text, re.sub(expression, replacement, text, flags=re.DOTALL)):
                changed.add(expression)
    return {expression for _, expression, _ in MUTATIONS[name][:1]} <= changed
