"""The cluster's processes on one machine, and the servers that they stand on."""
