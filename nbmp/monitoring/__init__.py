"""What the ranks of a launch are doing and what shared memory there is, as plain data. No user interface: anyone can
print or draw a snapshot.

    snapshots       ranks of a launch                     status       of all launches and pools
    memory          segments and limits, `memory_usage`, from what `segments` sees in each process
    memory_view     the same by the names of variables (`named_arrays`) and of ranks (`holders`), sorted into
                    `memory_rows`, with `remarks`; in words in `memory_text`
"""

from nbmp.monitoring.sampling import Sampler
from nbmp.monitoring.snapshots import LaunchSnapshot, RankSnapshot
from nbmp.monitoring.table import text_table

__all__ = ["LaunchSnapshot", "RankSnapshot", "Sampler", "text_table"]
