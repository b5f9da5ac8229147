"""The sequencing layer of a lazy log: replicas that acknowledge appends in one round trip and hold
them until they are ordered, and the view changes among these replicas (LazyLog, 4; decision 57).

It knows no engine. Engines that order what the layer holds import it; it imports only what all
engines share.
"""
