"""Which model answered, and whether it is the one that was asked (contract: stages, "Replies")."""

from __future__ import annotations

import re

_DATED = re.compile(r"-(?:\d{3,4}|\d{6}|\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2})")


def same_model(asked: str, answered: str, served_as: tuple[str, ...] = ()) -> bool:
    """Tell whether the name that answered stands for the model that was asked.

    It may lack a variant (`:free`) or the vendor's prefix, and may add a release date (`-2026-08-06`, `-0806`).

    Args:
        asked: the name that was sent, api_model.
        answered: the name in the reply.
        served_as: other names that the operator declared right.
    """
    got = answered.lower()
    if answered in served_as:
        return True
    whole = asked.lower()
    plain = whole.partition(":")[0]
    for name in {whole, plain, plain.rpartition("/")[2]}:
        if got == name or (got.startswith(name) and _DATED.fullmatch(got[len(name) :])):
            return True
    return False
