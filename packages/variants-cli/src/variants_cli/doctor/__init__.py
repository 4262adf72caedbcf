"""``variants doctor``: why a machine gets the builds that it gets, and what to do about it."""
