"""The gate: judges a fork's records by declared expectations, and says how many it has judged.

`python -m anabranch_spark.gate`. What is expected, and how it is judged and shown, is in
`anabranch_spark.expectations`; nothing imports this package.
"""
