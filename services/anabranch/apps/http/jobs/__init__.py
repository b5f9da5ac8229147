"""What jobs on many machines ask for over HTTP: scan plans, and appends that are done once."""
