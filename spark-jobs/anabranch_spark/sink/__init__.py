"""Writing a log exactly once: under writer marks, or into a fork that commit promotes.

Options, columns, names and the merging of commit messages are plain modules without pyspark.
`direct` and `forks` speak to the service. Above them are the two writers that Spark calls. Only the
data source and jobs import this package.
"""
