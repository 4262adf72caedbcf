"""A publisher's indexes by accelerator, laid out as PyTorch's, and catalogue entries for them."""

from upstream_server import wheel

from support.catalog_places import entry, variant
from support.index import metadata_of

LINUX, WINDOWS, ARM = "manylinux_2_28_x86_64", "win_amd64", "manylinux_2_28_aarch64"
MAC = "macosx_11_0_arm64"

CUDA = {"cuda12.8": "cu128", "cuda12.6": "cu126", "cuda13.0": "cu130"}
TORCH = entry(
    "torch",
    [
        *(
            variant(label, f'index = "URL/whl/{at}"\nlocal = "{at}"', cuda=label[4:])
            for label, at in CUDA.items()
        ),
        variant("null", 'index = "URL/whl/cpu"\nlocal = ["cpu", ""]'),
    ],
    coherent=["torchvision"],
)
OTHER_NAME = entry(
    "cupy",
    [
        variant("cuda12", 'requires = ["cupy-cuda12x=={version}"]', cuda="12.6"),
        variant("cuda13", 'requires = ["cupy-cuda13x=={version}"]', cuda="13.0"),
    ],
)
EXTRA = entry("jax", [variant("cuda12", 'requires = ["{name}[cuda12]=={version}"]', cuda="12.6")])
INDEX = entry("app", (), more='variants-index = "URL/simple/"\n')


def publish(
    server,
    backend,
    version,
    platforms,
    *requires,
    project="torch",
    hashed=True,
    python="cp312",
):
    """Publish the wheels of a version on one of the indexes; return their contents by name."""
    made = {}
    for platform in platforms:
        abi = "none" if platform == MAC else python
        name = f"{project}-{version}-{python}-{abi}-{platform}.whl"
        data = server.add(f"/whl/{backend}/{project}/", name, wheel(name, *requires))
        made[name], server.metadata_files[name] = data, metadata_of(data)
        server.unhashed |= set() if hashed else {name}
    return made
