"""The style of the page for people, and the headers that let a browser use it and nothing else."""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root { color-scheme: light dark; --edge: #8886; --soft: #8881; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; } }
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 1.8rem 0 .5rem; }
form { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .8rem 1rem;
  padding: 1rem; border: 1px solid var(--edge); border-radius: .5rem; }
label, fieldset { display: flex; flex-direction: column; gap: .2rem; font-weight: 600;
  min-width: 0; }
@media (min-width: 45rem) { .long { grid-column: span 2; } }
fieldset { border: 0; padding: 0; margin: 0; }
fieldset label { flex-direction: row; font-weight: 400; gap: .4rem; }
legend { padding: 0; }
small { font-weight: 400; opacity: .8; }
input, select, button { font: inherit; font-weight: 400; padding: .35rem .5rem; max-width: 100%; }
input[type=radio] { width: auto; }
button { grid-column: 1 / -1; justify-self: start; padding: .4rem 1.5rem; font-weight: 600; }
pre { margin: .2rem 0 .8rem; padding: .7rem; overflow-x: auto; background: var(--soft);
  border: 1px solid var(--edge); border-radius: .4rem; user-select: all; }
code { overflow-wrap: anywhere; }
.place { margin: 0; font-size: .9rem; opacity: .8; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--edge); }
td:first-child, td:nth-child(2) { white-space: nowrap; }
tr.chosen td { font-weight: 600; color: var(--good); }
[role=alert] { border: 2px solid #cf222e; border-radius: .4rem; padding: .6rem; }
"""

_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""``Content-Security-Policy``: this style and a form, no script and nothing from elsewhere."""
