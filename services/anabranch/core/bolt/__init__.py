"""AgileLog's engine, Bolt: a shared log that can be forked, on diskless brokers.

`protocol` holds what machines and clients say to one another, `logs` what logs are and how they
descend from one another, `state` the replicated state machine over them. The two roles, `metadata`
and `broker`, import these three and not each other. No other engine imports anything from here.
"""
