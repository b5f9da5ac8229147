"""Job `analytics`: three questions to the logs of the examples, each a small Spark job.

`iot` looks for readings unlike the sensor's others, `fraud` for payments unlike the user's, and
`supply` for items that run out. They read a log, or a fork with what an agent has added to it.
"""
