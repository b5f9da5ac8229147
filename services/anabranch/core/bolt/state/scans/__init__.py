"""What jobs may read and write in the store without brokers: scan plans, and compactors."""
