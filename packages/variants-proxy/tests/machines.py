"""The machine of most tests."""

from pep_variants.model.platform import Platform, Support

NVIDIA = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7", "12.6")})})
