"""The index proxy that uv talks to: a process for one command, or one that keeps running.

`connection` chooses between the two. `proxy_process` starts and watches the process of a command,
`server_process` runs in it, and `proxy_messages` is what the two exchange. `state_file` has the
address of the proxy of ``uv-variants serve``, and `background` starts and stops it. uv reaches both
through `address` and `http_proxy`.
"""
