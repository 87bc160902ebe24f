"""Launching ranks: what the launching process does (`start`, `context`, `supervisor`, `stopping`) and a rank (`rank`).

methods    how a process comes to life: fork, forkserver, spawn
where      where ranks are and what they wait for
written    what ranks write to their standard streams
bars       progress bars of ranks
"""
