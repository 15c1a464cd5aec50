"""How fast and how large the tool is, as JSON records, and the page of the docs made from them.

`make bench` (`python -m benchmarks`) measures Capra, `make bench-peers` (`python -m
benchmarks.peers`) sets it beside other tools on one product, and `make bench-docs` (`python -m
benchmarks.docs`) makes the tables of docs/reference/benchmarks.md from the records in docs/reference.
"""
