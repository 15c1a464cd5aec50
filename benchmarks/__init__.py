"""How fast and how large the tool is, as JSON records, and the page of the docs made from them.

`python -m benchmarks` (`make bench`) measures Capra, `python -m benchmarks.peers` (`make
bench-peers`) sets it beside other tools on one product, and `python -m benchmarks.docs` makes the
tables of docs/reference/benchmarks.md from the records beside it.
"""
