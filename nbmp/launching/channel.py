"""What is said on the control channel between the launching process and one rank.

launching process                                   rank
  SETUP, TASK (not under fork: inherited)   ──>
                                            <──     SHOWN any number of times
  SEEN after each                           ──>
                                            <──     RETURNED, RAISED or EXITED once
"""

import pickle
from collections.abc import Sequence
from typing import Any

from nbmp.pickling.parcel import FdOwner, Parcel, pack

SETUP, TASK, RETURNED, RAISED, EXITED, SHOWN, SEEN = range(1, 8)


def plain(obj: Any, owners: Sequence[FdOwner] = ()) -> Parcel:
    """Return an object of nbmp's own as a parcel, pickled by name; `owners` are of descriptors to go along."""
    return pack((pickle.dumps(obj, protocol=5),), (), owners, recycled=False)
