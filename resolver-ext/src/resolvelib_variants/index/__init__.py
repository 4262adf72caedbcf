"""Package indexes: pages of the simple API and who may read them.

`pages` reads and writes pages and knows no network; `credentials` finds out what to say to an
index that asks who is there.
"""
