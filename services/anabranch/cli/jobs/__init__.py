"""Commands about what jobs hold: scan plans, and compactors."""
