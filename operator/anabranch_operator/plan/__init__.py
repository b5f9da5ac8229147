"""What the operator decides, from what it has seen: no clock, no network, no API server.

`engine` is the machine; each other room plans one family of resources.
"""
