"""How a rank comes to life: one file for each start method, the same function `start` in all.

    start(plans)      starts the processes of a launch, in rank order

Each rank gets its end of the control channel, the read end of its lifeline, and pipes for stdout and stderr, and
becomes the leader of a process group of its own.
"""
