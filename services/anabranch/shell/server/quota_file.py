"""A process's share of its log's quota, as a file that whoever runs the process keeps up to date.

A shard's process knows no catalogue of logs. The supervisor of local processes and the operator do,
and write what one shard may take. A file says it also after a restart of either.
"""

import asyncio
from functools import partial

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.core.limits import KIB
from anabranch.core.quota import AppendShare
from anabranch.shell.net.reload import Renewed
from anabranch.shell.runtime.regular_file import read_regular
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.telemetry.log import Log

LOOK_S = 1.0
"""Between two looks at the file."""
_BYTES_MAX = 4 * KIB


def read(file: str) -> AppendShare:
    """No file, or an empty one, limits nothing. Raises BadRequest for one that can't be read."""
    try:
        content = read_regular(file, _BYTES_MAX)
    except FileNotFoundError:
        return AppendShare()
    except OSError as error:
        raise BadRequest(f"the quota in {file}", str(error)) from None
    if not content.strip():
        return AppendShare()
    try:
        share = msgspec.json.decode(content, type=AppendShare)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the quota in {file}", str(error)) from None
    share.quota.check(file)
    return share


class FollowedQuota:
    """The file's quota as it is enforced; it is read when this is made, which raises BadRequest."""

    def __init__(self, limits: AppendLimits, file: str, log: Log | None) -> None:
        self._limits = limits
        self._renewed = Renewed((file,), partial(read, file), log)
        self.look()

    def look(self) -> None:
        """Enforce what the file says now; a file that can't be read changes nothing."""
        share = self._renewed.current()
        self._limits.log = share.log or self._limits.log
        self._limits.set(share.quota)

    async def follow(self) -> None:
        """Until this is cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()
