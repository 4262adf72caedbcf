"""The compatibility engine for wheel variants (PEP 817, PEP 825): no network, no installer.

The way of the data, one module for each step:

* `filename`, `label`: which label a wheel has.
* `reader` (all generations of the format) and `wheel` (what is inside a wheel) give `Metadata`;
  `merging` combines it and holds wheels to what their index promised; `writer` writes it.
* `detection` (with `providers`) or a platform file give a `Platform`.
* `ranking` judges and orders the variants for it, with the wishes of `preferences`;
  `explanation` puts that into words.
* `selection` does all of this for the files of one version.
* `markers` reduces the dependencies of the chosen wheel to plain ones.

Every error is a `VariantError` of `errors`. Import from the modules: this package itself loads
nothing, because installers pay for it at every start.
"""
