"""A resolver over real indexes, for this machine or others, built on `VariantProvider`.

`resolver.resolve` is where it all comes together: requirements (`requirements`) for a `target`,
files of all sources (`finder`) that the target can use (`evaluator`), what they say of themselves
(`metadata`), and a resolvelib provider over all of it (`provider`). Out comes a `Resolution`
(`result`), or an error that explains why not (`failure`).
"""
