"""A command of Capra as a test runs it, and what came of it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def json(self, code: int = 0) -> Any:
        assert self.code == code, self.err
        return json.loads(self.out)


Cli = Callable[..., Result]
