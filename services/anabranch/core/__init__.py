"""The cores: plain deterministic Python without a clock, socket, thread, randomness or logger.

Each protocol is a machine, `step(now, event) -> effects`. Modules that lie here directly (the
machine, limits, types, alarms, budgets) are for every engine and know none. Everything above may
import a core; a core imports cores only.
"""
