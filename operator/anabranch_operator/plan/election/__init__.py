"""Which operator leads, and whether its watches show it all changes. The rest of `plan` uses only
`leadership`.
"""
