"""The extension: which instruction set it uses is up to CFLAGS."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "dotproduct._kernel",
            ["src/dotproduct/_kernel.c"],
            depends=["src/dotproduct/dot.h"],  # which also brings it into source distributions
            define_macros=[("Py_LIMITED_API", "0x030A0000")],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
