"""What differs between operating systems: one file each, the same function names in all, chosen here."""

import sys

if sys.platform == "linux":
    from nbmp.platforms.gpu import CUDA_LIBRARY, cuda_user, lost_to_fork, visible_gpus
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
        unreceived_bytes,
        unsafe_to_fork,
        waiting_bytes,
    )
    from nbmp.platforms.threads import (
        cpu_seconds,
        name_this_thread,
        signal_thread,
        thread_status,
        threads_of,
        waits_for_lock,
    )
else:
    from nbmp.platforms.other import (
        CUDA_LIBRARY,
        anonymous_file,
        arm_lifeline,
        available_memory,
        cpu_count,
        cpu_seconds,
        cuda_user,
        exit_sentinel,
        grow_pipe,
        lost_to_fork,
        name_this_thread,
        oom_kills,
        owner,
        seal,
        shared_memory_folder,
        signal_thread,
        thread_status,
        threads_of,
        unreceived_bytes,
        unsafe_to_fork,
        visible_gpus,
        waiting_bytes,
        waits_for_lock,
    )

__all__ = [
    "CUDA_LIBRARY",
    "anonymous_file",
    "arm_lifeline",
    "available_memory",
    "cpu_count",
    "cpu_seconds",
    "cuda_user",
    "exit_sentinel",
    "grow_pipe",
    "lost_to_fork",
    "name_this_thread",
    "oom_kills",
    "owner",
    "seal",
    "shared_memory_folder",
    "signal_thread",
    "thread_status",
    "threads_of",
    "unreceived_bytes",
    "unsafe_to_fork",
    "visible_gpus",
    "waiting_bytes",
    "waits_for_lock",
]
