"""Wheel variants for any resolvelib provider.

`provider.VariantProvider` wraps a provider, `ordering.VariantOrdering` orders the candidates of any
other resolver; `interfaces` says what they ask of a client. With the extra ``index``, `resolution`
resolves over real package indexes.
"""

__version__ = "0.1.0"
