"""Mutants: deliberately broken copies of the project, each of which its tests must notice.

A mutant that no test notices is a test that is missing, or no fault at all (equivalent). The tables
name each change, why it is wrong, and the checks that should fail; the runner applies one change at
a time to a copy of the checkout and runs them. See docs/concepts/verification.md.
"""
