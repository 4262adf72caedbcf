"""The forms of uv's commands that change files of a project, as a table.

`{url}` stands for the index with `app`, `plain` and `always`; `{other}` for a second one with
`extra`; `{links}` for a page of links; `{bin}` for the folder of uv; `{ours}` for that of
uv-variants. `KEYS` are those that show a key of uv's configuration; see `uv_beside.places` for
their indexes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD = '[project]\nname = "project"\nversion = "1.0"\nrequires-python = ">=3.10"\n'
EMPTY = HEAD + "dependencies = []\n"
WITH_APP = HEAD + 'dependencies = ["app>=1.0"]\n'
NAMED_DEFAULT = '\n[[tool.uv.index]]\nname = "own"\nurl = "{url}"\ndefault = true\n'
UNNAMED_DEFAULT = '\n[[tool.uv.index]]\nurl = "{url}"\ndefault = true\n'
NAMED = '\n[[tool.uv.index]]\nname = "more"\nurl = "{other}"\n'
EXPLICIT = '\n[[tool.uv.index]]\nname = "more"\nurl = "{other}"\nexplicit = true\n'
EXTRA_FROM_MORE = '\n[tool.uv.sources]\nextra = { index = "more" }\n'
WORKSPACE = EMPTY + '\n[tool.uv.workspace]\nmembers = ["packages/*"]\n'
MEMBER = EMPTY.replace('"project"', '"member"')
SCRIPT = '# /// script\n# requires-python = ">=3.10"\n# dependencies = []\n# ///\nprint(1)\n'

ODD = """\
# The first line.

[tool.uv]
package = false   # not a package

[project]  # ours
name="project"   # no spaces
version = '1.0'
requires-python   =   ">=3.10"
dependencies = [
  # before
  "plain", # behind


\t"always>=1"  # a tab, no comma
]   # the end of it
# Between the tables.
[project.optional-dependencies]
b = [ "plain" ]   # in one line
a = []

[dependency-groups]
dev = ["plain",]
[tool.other]
x = { a = 1,b=2 }
[[tool.uv.index]]  # the mirror
# Inside.
name = 'own'  # its name
url = '{url}'
default = true  # all of it
# The last line, which has no end."""


@dataclass(frozen=True)
class Form:
    """A command, and the folder in which it runs.

    Attributes:
        name: what is special in it.
        arguments: of uv.
        files: contents by path; CRLF if they begin with a carriage return.
        environ: more variables.
        config: the user's own ``uv.toml``.
        before: arguments of commands that run first.
        plain: arguments of plain uv where they differ.
        cwd: where it runs, below the folder.
        default_index: ``UV_DEFAULT_INDEX`` is set to the index.
        variants: it is tried with the copy of the index that has variants, too.
        fails: uv's exit code is not 0.
        shows: name and version in uv.lock that are there because of the form's key alone.
        since: the first uv that has it.
        until: the first uv that has it no longer.
    """

    name: str
    arguments: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=lambda: {"pyproject.toml": EMPTY})
    environ: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    before: tuple[tuple[str, ...], ...] = ()
    plain: tuple[str, ...] = ()
    cwd: str = "."
    default_index: bool = True
    variants: bool = True
    fails: bool = False
    shows: str = ""
    since: tuple[int, ...] = (0,)
    until: tuple[int, ...] = (99,)

    def exists_in(self, uv: str) -> bool:
        """Return whether that uv has it."""
        return self.since <= tuple(map(int, uv.split("."))) < self.until

    @property
    def names_app(self) -> bool:
        """Whether it has to do with the project that has variants."""
        words = (*self.arguments, *self.files.values(), *(str(args) for args in self.before))
        return any("app" in word for word in words)


def _form(name: str, command: str, pyproject: str = EMPTY, **options: object) -> Form:
    files = {"pyproject.toml": pyproject} if pyproject else {}
    files |= options.pop("files", {})  # type: ignore[arg-type]
    return Form(name, tuple(command.split()), files, **options)  # type: ignore[arg-type]


def _pyproject(**options: object) -> dict[str, object]:
    return {"default_index": False, **options}


_LOCKED = {"before": (("lock",),)}
_ADDED = {"before": (("add", "--no-sync", "app", "plain"),)}

FORMS = (
    # What is added.
    _form("add", "add app"),
    _form("add two", "add app plain"),
    _form("add, exact version", "add app==1.0"),
    _form("add, range", "add app>=1,<2"),
    _form("add, marker", "add app;python_version>='3.8'"),
    _form("add, extra", "add app[some]", variants=False),
    _form("add again", "add app>=0.5", **_ADDED),
    _form("add, nothing new", "add plain", EMPTY.replace("[]", '["plain"]')),
    _form("add --raw", "add --raw app", since=(0, 8)),
    _form("add --raw-sources", "add --raw-sources app"),
    _form("add --bounds exact", "add --bounds exact app", since=(0, 8)),
    _form("add --bounds major", "add --bounds major app", since=(0, 8)),
    _form("add-bounds in pyproject", "add app", EMPTY + '[tool.uv]\nadd-bounds = "exact"\n',
          since=(0, 8)),
    _form("add --dev", "add --dev app"),
    _form("add --group", "add --group gpu app"),
    _form("add --optional", "add --optional gpu app"),
    _form("add to a group that is there", "add --group gpu app",
          EMPTY + '[dependency-groups]\ngpu = ["plain"]\nall = [{ include-group = "gpu" }]\n'),
    _form("add --no-sync", "add --no-sync app"),
    _form("add --frozen", "add --frozen app"),
    _form("add --locked", "add --locked app", fails=True),
    _form("add -r", "add -r requirements.txt",
          files={"requirements.txt": "app>=1.0\nplain  # why\n"}),
    _form("add -r with an index in it", "add -r requirements.txt",
          files={"requirements.txt": "--extra-index-url {other}\napp>=1.0\n"}),
    _form("add -c", "add app -c constraints.txt", since=(0, 8),
          files={"constraints.txt": "app<2\nalways==1.0\n"}),
    _form("add a folder", "add ./local --no-sync",
          files={"local/pyproject.toml": MEMBER.replace("member", "local")}),
    _form("add --editable", "add --editable ./local --no-sync",
          files={"local/pyproject.toml": MEMBER.replace("member", "local")}),
    _form("add of what is not there", "add nothing-there", fails=True),
    _form("add of a version that is not there", "add app>=9", fails=True),
    _form("add without a project", "add app", pyproject="", fails=True, cwd="elsewhere"),
    _form("add --project", "add --project inner app", files={"inner/pyproject.toml": MEMBER}),
    _form("add --directory", "--directory inner add app", files={"inner/pyproject.toml": MEMBER}),
    _form("add --upgrade-package", "add plain --upgrade-package app", **_ADDED),
    _form("add --quiet", "add -q app"),
    # Where it comes from.
    _form("add --index name=", "add --index more={other} extra"),
    _form("add --index", "add --index {other} extra"),
    _form("add --index twice", "add --index more={other} --index again={url} extra app"),
    _form("add --index name= that is there", "add --index more={other} extra", EMPTY + NAMED),
    _form("add --index name= with another URL", "add --index more={other} extra",
          EMPTY + NAMED.replace("{other}", "{url}")),
    _form("add --index, explicit there", "add --index more={other} extra", EMPTY + EXPLICIT),
    _form("add --default-index", "add --default-index {url} app", default_index=False),
    _form("add --default-index name=", "add --default-index own={url} app", default_index=False),
    _form("add --default-index, another there", "add --default-index own={url} app",
          EMPTY + NAMED_DEFAULT.replace("own", "first").replace("{url}", "{other}"),
          default_index=False),
    _form("add --index-url", "add --index-url {url} app", default_index=False),
    _form("add --extra-index-url", "add --extra-index-url {other} extra"),
    _form("add --index-strategy", "add --index-strategy unsafe-best-match app extra",
          EMPTY + NAMED),
    _form("add --find-links folder", "add --find-links links linked", files={"links/": ""}),
    _form("add --find-links page", "add --find-links {links} linked"),
    _form("find-links in pyproject", "add linked", EMPTY + '[tool.uv]\nfind-links = ["{links}"]\n'),
    _form("add --no-index --find-links", "add --no-index --find-links links linked",
          files={"links/": ""}),
    _form("UV_FIND_LINKS", "add linked", environ={"UV_FIND_LINKS": "{links}"}),
    _form("add --no-index", "add --no-index app", fails=True),
    _form("named default in pyproject", "add app", EMPTY + NAMED_DEFAULT, **_pyproject()),
    _form("unnamed default in pyproject", "add app", EMPTY + UNNAMED_DEFAULT, **_pyproject()),
    _form("two indexes in pyproject", "add app extra", EMPTY + NAMED + NAMED_DEFAULT,
          **_pyproject()),
    _form("index-url in pyproject", "add app", EMPTY + '[tool.uv]\nindex-url = "{url}"\n',
          **_pyproject()),
    _form("explicit index and source", "add extra", EMPTY + EXPLICIT + EXTRA_FROM_MORE),
    _form("source, another added", "add app",
          HEAD + 'dependencies = ["extra"]\n' + EXPLICIT + EXTRA_FROM_MORE),
    _form("sources with markers", "add app",
          HEAD + 'dependencies = ["extra"]\n' + EXPLICIT
          + "\n[tool.uv.sources]\nextra = [{ index = \"more\", marker = "
          "\"sys_platform == 'linux'\" }, { index = \"more\", marker = "
          "\"sys_platform != 'linux'\" }]\n"),
    _form("trailing slash", "add app", EMPTY + NAMED_DEFAULT.replace("{url}", "{url}/"),
          **_pyproject()),
    _form("user's uv.toml", "add app", config='[[index]]\nname = "own"\nurl = "{url}"\n'
          "default = true\n", **_pyproject()),
    _form("user's uv.toml, index-url", "add app", config='index-url = "{url}"\n', **_pyproject()),
    _form("user's uv.toml, more", "add extra",
          config='[[index]]\nname = "more"\nurl = "{other}"\n'),
    _form("project's uv.toml", "add app", **_pyproject(),
          files={"uv.toml": '[[index]]\nname = "own"\nurl = "{url}"\ndefault = true\n'}),
    _form("--config-file", "--config-file other.toml add app", **_pyproject(),
          files={"other.toml": '[[index]]\nname = "own"\nurl = "{url}"\ndefault = true\n'}),
    _form("UV_INDEX", "add extra", environ={"UV_INDEX": "more={other}"}),
    _form("UV_EXTRA_INDEX_URL", "add extra", environ={"UV_EXTRA_INDEX_URL": "{other}"}),
    _form("UV_INDEX_URL", "add app", environ={"UV_INDEX_URL": "{url}"}, default_index=False),
    _form("named UV_DEFAULT_INDEX", "add app", environ={"UV_DEFAULT_INDEX": "own={url}"},
          default_index=False),
    _form("a stray #", "add app", EMPTY + NAMED_DEFAULT.replace("{url}", "{url}#stray"),
          **_pyproject()),
    # What is removed.
    _form("remove", "remove app", **_ADDED),
    _form("remove --dev", "remove --dev app", before=(("add", "--dev", "app"),)),
    _form("remove --group", "remove --group gpu app", before=(("add", "--group", "gpu", "app"),)),
    _form("remove --optional", "remove --optional gpu app",
          before=(("add", "--optional", "gpu", "app", "plain"),)),
    _form("remove with source", "remove extra",
          HEAD + 'dependencies = ["extra"]\n' + EXPLICIT + EXTRA_FROM_MORE),
    _form("remove --frozen", "remove --frozen app", **_ADDED),
    _form("remove of what is not there", "remove app", fails=True),
    # New files.
    _form("init", "init --vcs none fresh", pyproject="", cwd="elsewhere"),
    _form("init --lib", "init --vcs none --lib fresh", pyproject="", cwd="elsewhere"),
    _form("init --bare", "init --bare fresh", pyproject="", cwd="elsewhere", since=(0, 8)),
    _form("init --script", "init --script fresh.py", pyproject="", cwd="elsewhere"),
    _form("init in a workspace", "init --vcs none packages/fresh", WORKSPACE),
    _form("init that is there", "init", fails=True),
    # Workspaces.
    _form("add --package", "add --package member app", WORKSPACE,
          files={"packages/member/pyproject.toml": MEMBER}),
    _form("add in a member", "add app", WORKSPACE, cwd="packages/member",
          files={"packages/member/pyproject.toml": MEMBER}),
    _form("add of a member", "add member --no-sync", WORKSPACE,
          files={"packages/member/pyproject.toml": MEMBER}),
    _form("add --package, indexes in the root", "add --package member app",
          WORKSPACE + NAMED_DEFAULT, **_pyproject(
              files={"packages/member/pyproject.toml": MEMBER})),
    _form("add --package, indexes in the member", "add --package member extra", WORKSPACE,
          files={"packages/member/pyproject.toml": MEMBER + EXPLICIT + EXTRA_FROM_MORE}),
    _form("add --package --index name=", "add --package member --index more={other} extra",
          WORKSPACE, files={"packages/member/pyproject.toml": MEMBER}),
    _form("remove --package", "remove --package member app", WORKSPACE,
          before=(("add", "--package", "member", "app"),),
          files={"packages/member/pyproject.toml": MEMBER}),
    # Scripts.
    _form("add --script", "add --script script.py app", files={"script.py": SCRIPT}),
    _form("add --script --index name=", "add --script script.py --index more={other} extra",
          files={"script.py": SCRIPT}),
    _form("add --script to one without a header", "add --script script.py app",
          files={"script.py": "#!/usr/bin/env python3\n# A remark.\nprint(1)\n"}),
    _form("add --script with a lock", "add --script script.py plain",
          files={"script.py": SCRIPT.replace("[]", '["app"]')},
          before=(("lock", "--script", "script.py"),)),
    _form("remove --script", "remove --script script.py app",
          files={"script.py": SCRIPT.replace("[]", '["app"]')}),
    _form("lock --script", "lock --script script.py",
          files={"script.py": SCRIPT.replace("[]", '["app"]')}),
    _form("run of a script", "run -q script.py", files={"script.py": SCRIPT}),
    # Locks.
    _form("lock", "lock", WITH_APP),
    _form("lock again", "lock", WITH_APP, **_LOCKED),
    _form("lock --check", "lock --check", WITH_APP, **_LOCKED, since=(0, 8)),
    _form("lock --check, not up to date", "lock --check", WITH_APP, fails=True, since=(0, 8),
          until=(0, 13)),
    _form("lock --upgrade", "lock --upgrade", WITH_APP, **_LOCKED),
    _form("lock --upgrade-package", "lock --upgrade-package app", WITH_APP, **_LOCKED),
    _form("lock --dry-run", "lock --dry-run", WITH_APP, since=(0, 8)),
    _form("lock, groups and extras", "lock", WITH_APP
          + '[project.optional-dependencies]\nb = ["plain"]\n'
          '[dependency-groups]\nc = ["always"]\n'),
    _form("lock, conflicts", "lock", EMPTY + '[project.optional-dependencies]\na = ["plain"]\n'
          'b = ["always"]\n[tool.uv]\nconflicts = [[{ extra = "a" }, { extra = "b" }]]\n'),
    _form("lock, environments", "lock",
          WITH_APP + "[tool.uv]\nenvironments = [\"sys_platform == 'linux'\"]\n"),
    _form("lock, constraints and overrides", "lock", WITH_APP
          + '[tool.uv]\nconstraint-dependencies = ["plain<9"]\n'
          'override-dependencies = ["always==1.0"]\n'),
    _form("lock, exclude-newer", "lock",
          WITH_APP + '[tool.uv]\nexclude-newer = "2030-01-01T00:00:00Z"\n',
          fails=True),
    _form("sync", "sync", WITH_APP),
    _form("sync --locked", "sync --locked", WITH_APP, **_LOCKED),
    _form("sync --frozen", "sync --frozen", WITH_APP, **_LOCKED),
    _form("sync --locked without a lock", "sync --locked", WITH_APP, fails=True),
    _form("version --bump", "version --bump minor", WITH_APP, since=(0, 8)),
    _form("version", "version 2.0 --frozen", WITH_APP, since=(0, 8)),
    _form("tree", "tree", WITH_APP, variants=False),
    _form("export", "export", WITH_APP, variants=False),
    # Commands in commands.
    _form("run uv add", "run uv add app", variants=False, environ={"PATH": "{bin}:{PATH}"}),
    _form("run uv-variants add", "run uv-variants add app", plain=("run", "uv", "add", "app"),
          environ={"PATH": "{bin}:{ours}:{PATH}"}),
    _form("run", "run --with app python -c print(1)"),
    # How it is written.
    _form("odd formatting, add", "add app", ODD, **_pyproject()),
    _form("odd formatting, remove", "remove plain", ODD, **_pyproject()),
    _form("odd formatting, add --dev", "add --dev app", ODD, **_pyproject()),
    _form("odd formatting, add --optional", "add --optional a app", ODD, **_pyproject()),
    _form("odd formatting, add --index", "add --index more={other} extra", ODD, **_pyproject()),
    _form("odd formatting, version", "version --bump patch", ODD, since=(0, 8), **_pyproject()),
    _form("carriage returns", "add app", "\r" + ODD.replace("\n", "\r\n"), **_pyproject()),
    _form("no table for dependencies", "add app", HEAD),
    _form("broken pyproject", "add app", "[project\n", fails=True),
)  # fmt: skip


_LOGIN = {"UV_INDEX_KEYED_USERNAME": "user", "UV_INDEX_KEYED_PASSWORD": "pass word"}


def _key(line: str, command: str, *, url: str = "", **options: object) -> Form:
    """Return a form with *line* in the table of uv, or of an index at *url*."""
    head = f'[[tool.uv.index]]\nname = "keyed"\nurl = "{{{url}}}"\n' if url else "[tool.uv]\n"
    name = f"index: {line}" if url else line
    return _form(name, command, f"{EMPTY}{head}{line}\n", variants=False, **options)


KEYS = (
    _key("# its name", "add guarded", url="guarded", environ=_LOGIN),
    _key("# its URL", "add plain", url="newer", shows="plain 9.0"),
    _key("explicit = true", "add plain", url="newer", shows="plain 1.0"),
    _key('default = true\n[[tool.uv.index]]\nname = "first"\nurl = "{url}"', "add plain",
         url="newer", default_index=False, shows="plain 1.0"),
    _key('format = "flat"', "add linked", url="links", since=(0, 8)),
    _key('authenticate = "never"', "add guarded", url="guarded", environ=_LOGIN, since=(0, 8),
         fails=True),
    _key("ignore-error-codes = [403]", "add plain", url="denied", since=(0, 8)),
    _key('exclude-newer = "2025-01-01T00:00:00Z"', "add old", url="dated", since=(0, 11),
         shows="old 1.0"),
    _key('exclude-newer-package = { old = "2025-01-01T00:00:00Z" }', "add old", url="dated",
         since=(0, 13, 9), shows="old 1.0"),
    _key('exclude-newer = "2025-01-01T00:00:00Z"', "add --index {dated} old", shows="old 1.0"),
    _key('exclude-newer-package = { old = "2025-01-01T00:00:00Z" }', "add --index {dated} old",
         since=(0, 8, 20), shows="old 1.0"),
    _key("no-index = true", "add plain", fails=True),
    _form("index", "lock", HEAD + 'dependencies = ["extra"]\n[tool.uv]\n'
          'index = [{ url = "{other}" }]\n', variants=False),
    _key('index-url = "{url}"', "add plain", default_index=False, shows="plain 1.0"),
    _key('extra-index-url = ["{other}"]', "add extra"),
    _key('find-links = ["{links}"]', "add linked"),
    _key('index-strategy = "unsafe-best-match"',
         "add --index {url} --default-index {newer} plain", default_index=False, shows="plain 9.0"),
    _key('keyring-provider = "subprocess"', "add --index {userless} guarded",
         environ={"PATH": "{keyring}:{PATH}"}),
    _key('allow-insecure-host = ["{secure_host}"]', "add --index {secure} secured"),
    _key("offline = true", "add --no-cache plain", fails=True),
    _key('explicit = true\n[tool.uv.sources]\nplain = { index = "keyed" }\n[tool.uv]\n'
         "no-sources = true", "add plain", url="newer", shows="plain 1.0"),
    _key('dependency-metadata = [{ name = "plain", version = "1.0", requires-dist = ["app"] }]',
         "add plain", shows="app 1.0"),
    _key('explicit = true\n[tool.uv.sources]\nplain = { index = "keyed" }', "add plain",
         url="newer", shows="plain 9.0"),
    _key("no-binary = true", "add plain", fails=True),
    _key('no-binary-package = ["plain"]', "add plain", fails=True),
    _key('cache-dir = "kept"', "add plain", environ={"UV_CACHE_DIR": ""}),
)  # fmt: skip
