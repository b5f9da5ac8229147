"""The Python client. `aio` and `sync` are its two faces for programs.

`session` decides and `driver` moves bytes for every engine; `bolt` and `belfast` have their own.
"""
