"""What differs between operating systems: one file each, the same function names in all, chosen here."""

import sys

if sys.platform == "linux":
    from nbmp.platforms.linux import (
        anonymous_file,
        arm_lifeline,
        available_memory,
        cpu_count,
        exit_sentinel,
        grow_pipe,
        oom_kills,
        owner,
        seal,
        shared_memory_folder,
        unsafe_to_fork,
        waiting_bytes,
    )
else:
    from nbmp.platforms.other import (
        anonymous_file,
        arm_lifeline,
        available_memory,
        cpu_count,
        exit_sentinel,
        grow_pipe,
        oom_kills,
        owner,
        seal,
        shared_memory_folder,
        unsafe_to_fork,
        waiting_bytes,
    )

__all__ = [
    "anonymous_file",
    "arm_lifeline",
    "available_memory",
    "cpu_count",
    "exit_sentinel",
    "grow_pipe",
    "oom_kills",
    "owner",
    "seal",
    "shared_memory_folder",
    "unsafe_to_fork",
    "waiting_bytes",
]
