"""The Python client. `aio` and `sync` are its two faces for programs.

`session` holds what every engine's client needs, `bolt` and `belfast` what is their own.
"""
