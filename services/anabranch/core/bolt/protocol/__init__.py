"""What clients, brokers and metadata members say to one another: commands, queries, letters,
messages.

Every other room of Bolt may import it; it imports none of them.
"""
