"""What a provider found, in a few words."""


def summary(provider):
    """Return the facts: ``CUDA driver 12.8 (forced), compute capability 9.0 and 8.6``."""
    values = {}
    for fact in provider.facts():
        value = f"{fact.value} (forced)" if fact.forced else fact.value
        values.setdefault(fact.what, {})[value] = None
    return ", ".join(f"{what} {_listed(list(found))}" for what, found in values.items())


def _listed(values):
    return " and ".join(filter(None, (", ".join(values[:-1]), values[-1])))
