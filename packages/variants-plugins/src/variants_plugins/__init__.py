"""Third-party provider plugins of wheel variants: installed isolated, and run confined.

The user's settings decide which packages may be installed (`pep_variants.preferences`). They are
installed into a virtual environment of their own; `runner.PluginRunner` starts them in it,
confined, and checks what comes back as untrusted input. Nothing is started or written before it is
asked.
"""
