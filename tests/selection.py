"""What `make test` leaves out of a battery of cases."""


def left_out(cases: int, count: int) -> set[int]:
    """The numbers of the cases that are full when `count` of them are kept, evenly spread."""
    return set(range(cases)) - {i * cases // count for i in range(count)}
