"""The command line: `anabranch ...`.

`commands` are clients of a service, `servers` run one or read what it stored, `options` and
`service` are what commands share, `render` is what they print.
"""
