"""The role that decides who is a member and which shards there are: view changes of the sequencing
layer, epochs of shards, shards that come and go (LazyLog, 4.5; decision 58).
"""
