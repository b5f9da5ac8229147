"""The command line: `anabranch ...`.

`commands` has one module a command or family of commands, `render` what they print.
"""
