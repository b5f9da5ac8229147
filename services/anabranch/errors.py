"""Every error that a program may catch: `from anabranch.errors import ReadBlocked`."""

from anabranch.core.errors import *  # noqa: F403 - the names are listed there, once
