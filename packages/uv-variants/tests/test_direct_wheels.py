"""Variant wheels that are named by path or URL."""

import pytest

from uv_variants._checks import check_direct_wheels
from uv_variants._command_line import parse
from uv_variants._errors import VariantMissing

WHEEL = "app-1.0-py3-none-any-cu128.whl"


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (f"pip install ./d/{WHEEL}", "pip install --find-links ./d app==1.0"),
        (f"add https://x.example/a/{WHEEL}#sha256=0", "add --find-links https://x.example/a app"),
        (f"tool run --from {WHEEL} app", "tool run --find-links . app==1.0"),
        (f"run --with d/{WHEEL} python", "run --find-links d app==1.0"),
    ],
)
def test_an_error_with_the_command_to_type(arguments, advice):
    with pytest.raises(VariantMissing) as caught:
        check_direct_wheels(parse(arguments.split()))
    assert f"uv-variants --variant app=cu128 {advice}" in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        "pip install app-1.0-py3-none-any.whl app",
        f"pip install --preview-features wheel-variants {WHEEL}",
        f"run python {WHEEL}",
        f"pip sync {WHEEL}",
    ],
)
def test_nothing_else_is_one(arguments):
    check_direct_wheels(parse(arguments.split()))
