"""The client of Erwin: appends at all members of a view, and reads from shards (LazyLog)."""
