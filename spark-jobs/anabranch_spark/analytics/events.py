"""Records of the examples: readings, payments, orders; the same ones each time they are made."""

import json
from collections.abc import Iterator

SENSORS = 20
USERS = 50
ITEMS = 12
_PRIME = 7_919


def readings(count: int, *, spike_every: int = 997) -> Iterator[bytes]:
    """Temperature and humidity of some sensors, with spikes while a sensor says `degraded`."""
    for turn in range(count):
        spike = turn % spike_every == spike_every - 1
        base, metric = (21.0, "temperature") if turn % 2 else (55.0, "humidity")
        value = base + _chance(turn, 200) / 100 + (60.0 if spike else 0.0)
        yield _line(
            sensor=f"s{_chance(turn // 2, SENSORS):02d}",
            metric=metric,
            value=round(value, 2),
            status="degraded" if spike else "ok",
        )


def payments(count: int, *, burst_every: int = 500) -> Iterator[bytes]:
    """Payments in cents, one a second. Now and then a user pays ten times within ten seconds."""
    for turn in range(count):
        burst = turn % burst_every < 10
        user = turn // burst_every if burst else _chance(turn, USERS)
        large = 40 if turn % burst_every == 9 else 1
        amount = (1_000 + _chance(turn * 3, 4_000)) * large
        yield _line(user=f"u{user % USERS:03d}", amount=amount, at=turn * 1_000)


def orders(count: int, *, restock_every: int = 100) -> Iterator[bytes]:
    """Orders of items, and restocks of all of them by turns, a little less than is ordered."""
    for turn in range(count):
        if turn % restock_every == 0:
            item = turn // restock_every % ITEMS
            yield _line(kind="restock", item=f"item-{item:02d}", quantity=340)
        else:
            item, quantity = _chance(turn, ITEMS), 1 + _chance(turn * 5, 5)
            yield _line(kind="order", item=f"item-{item:02d}", quantity=quantity)


def _chance(turn: int, below: int) -> int:
    """Not chance at all, so that each run makes the same records; it only looks like it."""
    return (turn * _PRIME + turn // 7 * 104_729) % 1_000_003 % below


def _line(**fields: str | float) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
