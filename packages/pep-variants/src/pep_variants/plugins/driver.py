"""Asks one plugin, inside its own environment. Run as a script; nothing of the engine is here.

A JSON object comes in on standard input: ``plugin_api``, ``frame`` and ``time_limit``. The answer
goes out on what standard output was at the start: the frame, then JSON in one line. What the
plugin itself prints goes to the error output.
"""

import contextlib
import faulthandler
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

# A plugin says with one of these, by generation of the format, that its answer never changes.
FIXED = ("is_build_plugin", "is_aot_plugin", "all_properties_compatible")
METHOD = "get_supported_configs"


def main() -> None:
    """Read the question, write the answer, end."""
    # Before anything of the plugin runs. The copy is not inherited by what the plugin starts.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.load(sys.stdin.buffer)
    # Should whoever waits for the answer be killed, nobody else ends this process.
    faulthandler.dump_traceback_later(request["time_limit"] + 2, exit=True, file=2)
    try:
        answer = ask(request["plugin_api"])
    except BaseException as error:  # SystemExit and worse are the plugin's answer, too
        with contextlib.suppress(BaseException):
            traceback.print_exc()
        answer = {"error": described(error)}
    text = json.dumps(answer, default=lambda value: f"<{type(value).__name__}>")
    channel.write(f"{request['frame']}{text}\n".encode())
    channel.flush()
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    # Not the usual way out: threads and exit handlers of the plugin have nothing left to say.
    os._exit(0)


def ask(plugin_api: str) -> dict[str, Any]:
    """Return what the plugin at the endpoint *plugin_api* supports, as JSON data."""
    module, _, path = plugin_api.partition(":")
    plugin: Any = import_module(module)
    for name in path.split(".") if path else ():
        plugin = getattr(plugin, name)
    if inspect.isclass(plugin) and needs_instance(plugin):
        plugin = plugin()
    return {
        "namespace": getattr(plugin, "namespace", None),
        "fixed": any(getattr(plugin, flag, False) is True for flag in FIXED),
        "features": plain(called(getattr(plugin, METHOD))),
    }


def needs_instance(plugin: type) -> bool:
    """Return whether the class *plugin* cannot be asked itself."""
    method = inspect.getattr_static(plugin, METHOD, None)
    namespace = inspect.getattr_static(plugin, "namespace", None)
    return not isinstance(method, (classmethod, staticmethod)) or isinstance(namespace, property)


def called(method: Callable[..., Any]) -> Any:  # noqa: ANN401 - whatever a stranger returns
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
    try:
        text = str(error)[:500]
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    main()
