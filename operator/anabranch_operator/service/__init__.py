"""The operator's way to the log service and to what its pods say."""
