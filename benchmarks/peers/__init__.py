"""Systems of others that are measured beside ours, on the same machine and in the same run."""
