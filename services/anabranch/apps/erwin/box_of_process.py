"""The black box of a shard that is a process. Its data directory holds no journal then, but says
where the journal is, so that no later start takes the shard for a new one.
"""

import asyncio
import os

from anabranch.apps.erwin.black_boxes import open_journal
from anabranch.apps.pods.log_settings import ShardSettings
from anabranch.core.errors import BadRequest
from anabranch.core.storage.black_box_address import BlackBoxAddress
from anabranch.core.storage.journal import SEGMENT, snapshot_index
from anabranch.ports import RecordJournal
from anabranch.shell.journal.data_dir import DataDir
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.far_journal import note_place, noted_place
from anabranch.shell.journal.watermark import WatermarkFile

NOTE = "black-box.reached"
"""In the data directory: how far the journal went, unless `reached_file` names another place."""


class ProcessBlackBox:
    """`apps/pods/log_node.py: FarJournal` of one shard."""

    def __init__(self, settings: ShardSettings) -> None:
        self._settings = settings
        self._address = BlackBoxAddress.parse(settings.black_box)

    @property
    def _place(self) -> str:
        """Without the servers, which may move."""
        return f"{self._address.kind} {self._address.name}"

    def open(self, directory: DataDir, loop: asyncio.AbstractEventLoop) -> RecordJournal:
        """For a thread. Raises BadRequest if the directory says that the journal is elsewhere."""
        settings = self._settings
        here = any(map(_is_of_journal, RealDisk(directory.journal).names()))
        before = "its own journal" if here else noted_place(directory.root)
        if before not in ("", self._place):
            reason = f"the records of shard {settings.shard} are in {before}, and stay there"
            raise BadRequest(f"black_box = {settings.black_box}", reason)
        owner = f"{settings.cluster} {settings.shard}"
        reached = settings.reached_file or f"{directory.root}/{NOTE}"
        note = WatermarkFile(*os.path.split(os.path.abspath(reached)))
        return open_journal(self._address, owner, note, settings.kafka_file, loop)

    def opened(self, directory: DataDir) -> None:
        """Its journal could be opened, and belongs to this shard."""
        if not noted_place(directory.root):
            note_place(directory.root, self._place)


def _is_of_journal(name: str) -> bool:
    return name.endswith(SEGMENT) or snapshot_index(name) is not None
