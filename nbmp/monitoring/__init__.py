"""What the ranks of a launch are doing and what shared memory there is, as plain data. No user interface: anyone can
print or draw a snapshot.

    snapshots  ranks of a launch, as `sampling` takes them, with `gauges` and `gpus`
    table      a snapshot as text                       showing  the table of ranks once more: `nbmp.monitor`
    status     what runs, of all launches and pools     memory   shared memory
"""

from nbmp.monitoring.sampling import Sampler
from nbmp.monitoring.snapshots import LaunchSnapshot, RankSnapshot
from nbmp.monitoring.table import text_table

__all__ = ["LaunchSnapshot", "RankSnapshot", "Sampler", "text_table"]
