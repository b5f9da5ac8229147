"""What all parts of a broker are made with: its name, limits, alarms and outbox."""

from dataclasses import dataclass

from anabranch.core.alarms import Alarms
from anabranch.core.bolt.broker.outbox import Outbox
from anabranch.core.limits import Limits


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """Shared by reference: what one part puts into the outbox goes out with the others' effects."""

    name: str
    cluster: str
    limits: Limits
    outbox: Outbox
    alarms: Alarms
