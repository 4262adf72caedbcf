"""Third-party provider plugins of wheel variants: installed isolated, and run confined.

The user's settings decide which packages may be installed (`pep_variants._settings.trust`).
`environment` installs them into a virtual environment with the `installer`, `runner` starts
`driver` in it, confined by `sandbox`, and `answer` checks what came back as untrusted input.
Nothing is started or written before a `PluginRunner` is asked.
"""
