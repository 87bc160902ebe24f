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
        unreceived_bytes,
        unsafe_to_fork,
        waiting_bytes,
    )
    from nbmp.platforms.threads import name_this_thread, signal_thread, thread_status, threads_of, waits_for_lock
else:
    from nbmp.platforms.other import (
        anonymous_file,
        arm_lifeline,
        available_memory,
        cpu_count,
        exit_sentinel,
        grow_pipe,
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
        waiting_bytes,
        waits_for_lock,
    )

__all__ = [
    "anonymous_file",
    "arm_lifeline",
    "available_memory",
    "cpu_count",
    "exit_sentinel",
    "grow_pipe",
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
    "waiting_bytes",
    "waits_for_lock",
]
