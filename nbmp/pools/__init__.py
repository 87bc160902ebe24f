"""Worker processes and the tasks they are given: what `nbmp.pool` and `nbmp.executor` have in common.

    a call                tasks      pickled where it is made
                          feeding    cut into tasks, a few ahead
                          results    waited for; `waited`: what all calls have in common
    the pool's thread     workers    follows all workers; `watched`: what a monitor asks of them
                          requests   what other threads ask it to do
                          giving     which worker gets which task
                          worker     one worker, seen from here; `starting`: how it is made
                          failures   what its end and its errors are told as
    a worker              serving    takes tasks and sends outcomes; `overlay`: the names of cells meanwhile
    between the two       messages

`making` makes the workers of a pool and ends those that nobody ended; `reloads` knows when workers have an old module.
"""
