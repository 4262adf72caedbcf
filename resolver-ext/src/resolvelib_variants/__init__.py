"""Wheel variants for any resolvelib provider.

`VariantProvider` wraps a provider, `VariantOrdering` orders the candidates of any other resolver.
With the extra ``index``, ``resolvelib_variants.resolution`` resolves over real package indexes.

The names of ``__all__`` are the public interface (``docs/reference/stability.md``); every other
module and name is internal and may change in any release. They are imported on first access.
"""

__version__ = "0.1.0"
