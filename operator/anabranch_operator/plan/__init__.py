"""What the operator decides, from what it has seen: no clock, no network, no API server."""
