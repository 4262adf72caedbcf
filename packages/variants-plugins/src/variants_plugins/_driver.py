"""Asks one plugin, inside its own environment. Run as a script; nothing of the engine is here.

A JSON object comes in on standard input, see `runner`. The answer goes out on what standard output
was at the start: the frame, then JSON in one line. What the plugin itself prints goes to the error
output. `sandbox` lies beside this file.

Python has to be started without the `site` module (``-S``): that runs code of the environment, of
``.pth`` files and `sitecustomize`. It is called here once the process is confined.
"""

import contextlib
import faulthandler
import importlib.util
import inspect
import json
import os
import site
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

# A plugin says with one of these, by generation of the format, that its answer never changes.
FIXED = ("is_build_plugin", "is_aot_plugin", "all_properties_compatible")


class Foreign(Exception):
    """An endpoint that is not one of the packages that the user allowed."""


def main() -> None:
    """Read the question, write the answer, end."""
    # Before anything of the plugin runs. The copy is not inherited by what the plugin starts.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.load(sys.stdin.buffer)

    def send(answer: dict[str, Any]) -> None:
        text = json.dumps(answer, default=lambda value: f"<{type(value).__name__}>")
        channel.write(f"{request['frame']}{text}\n".encode())
        channel.flush()

    def run() -> None:
        respond(request, send)

    if sys.platform != "linux":
        run()
    sandbox().supervise(
        run,
        lambda limit: send({"error": limit}),
        seconds=request["time_limit"] + 2,
        memory=request["memory"],
        processes=request["processes"],
    )


def respond(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    """Confine this process, ask the plugin, send the answer, exit."""
    measures = {}
    try:
        confinement = sandbox()
        confinement.limit(request["limits"])
        if request["sandbox"]:
            measures = confinement.confine(
                request["writable"], request["homes"], request["threads"], request["environment"]
            )
        # Should the caller be killed, nothing else may end this process. It starts a thread, with
        # which cannot be confined.
        faulthandler.dump_traceback_later(request["time_limit"] + 2, exit=True, file=2)
        site.main()
        check_endpoint(request["plugin_api"].partition(":")[0], request["distributions"])
        answer = ask(request["plugin_api"], request["method"])
    except BaseException as error:  # SystemExit and worse are the plugin's answer, too
        answer = {"error": described(error), "foreign": isinstance(error, Foreign)}
        with contextlib.suppress(BaseException):
            answer["traceback"] = traceback.format_exc()[-4096:]
    answer["sandbox"] = measures
    try:
        send(answer)
    except BaseException as error:  # not data that JSON can hold
        send({"error": described(error)})
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
    # Not the usual way out: threads and exit handlers of the plugin have nothing left to say.
    os._exit(0)


def sandbox() -> Any:  # noqa: ANN401
    """Return the module in `sandbox.py` beside this file, whose folder is not on `sys.path`."""
    path = Path(__file__).with_name("_sandbox.py")
    spec = importlib.util.spec_from_file_location("_pep_variants_sandbox", path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def check_endpoint(module: str, names: list[str]) -> None:
    """Check that importing *module* runs files of the distributions *names* first.

    Nothing is imported for that: a parent package is code, too, so each of them is looked up in
    the order in which it would be imported, and has to be in the list of installed files.

    Raises:
        Foreign: it is a module of another distribution or of Python itself.
        ModuleNotFoundError: there is no such module.
    """
    owned: dict[Path, set[str]] = {}
    for name in names:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        root = Path(str(found.locate_file(""))).resolve()
        owned.setdefault(root, set()).update(map(str, found.files or ()))
    parts = module.split(".")
    path = None
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        # Without a path also what is built in or frozen is found, as it would be imported.
        spec = importlib.util.find_spec(name) if path is None else PathFinder.find_spec(name, path)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}")
        places = spec.submodule_search_locations
        if spec.origin is None and places is not None:  # a namespace package: no code
            path = list(places)
            continue
        if not (spec.has_location and is_owned(str(spec.origin), owned)):
            raise Foreign(f"{name} is not a module of {', '.join(names)}")
        path = list(places or ())


def is_owned(origin: str, owned: dict[Path, set[str]]) -> bool:
    """Return whether the file *origin* is among those of a root's distributions."""
    # The folder without symbolic links; what the last one points to does not matter.
    path = Path(origin).parent.resolve() / Path(origin).name
    return any(
        path.is_relative_to(root) and path.relative_to(root).as_posix() in files
        for root, files in owned.items()
    )


def ask(plugin_api: str, method: str) -> dict[str, Any]:
    """Return what *method* of the plugin at the endpoint *plugin_api* says, as JSON data."""
    module, _, path = plugin_api.partition(":")
    plugin: Any = import_module(module)
    for name in path.split(".") if path else ():
        plugin = getattr(plugin, name)
        if inspect.ismodule(plugin):
            raise Foreign(f"{name} is a module: name it before the colon")
    if inspect.isclass(plugin) and needs_instance(plugin, method):
        plugin = plugin()
    return {
        "namespace": getattr(plugin, "namespace", None),
        "fixed": any(getattr(plugin, flag, False) is True for flag in FIXED),
        "features": plain(called(getattr(plugin, method))),
    }


def needs_instance(plugin: type, name: str) -> bool:
    """Return whether the class *plugin* cannot be asked itself.

    Raises:
        AttributeError: it is not a plugin; it is not instantiated then.
    """
    method = inspect.getattr_static(plugin, name)
    namespace = inspect.getattr_static(plugin, "namespace", None)
    return not isinstance(method, (classmethod, staticmethod)) or isinstance(namespace, property)


def called(method: Callable[..., Any]) -> Any:  # noqa: ANN401
    """Return the result of *method*; older plugins want the known properties, or None."""
    try:
        inspect.signature(method).bind()
    except TypeError:
        return method(None)
    except ValueError:  # built-in functions may have no signature
        pass
    return method()


def plain(configs: Any) -> Any:  # noqa: ANN401
    """Return feature configurations as JSON data; what has a wrong type is left for the reader."""
    if not isinstance(configs, (list, tuple)):
        return configs
    return [
        {
            "name": config.name,
            "values": config.values,
            "multi_value": getattr(config, "multi_value", False),
        }
        for config in configs
    ]


def described(error: BaseException) -> str:
    """Return type and message of *error*, whatever its own code does."""
    if isinstance(error, Foreign):
        return str(error)
    try:
        text = str(error)[:500]
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    main()
