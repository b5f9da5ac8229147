"""The client of a Belfast deployment: appends to shards, and one log read ahead of its order."""
