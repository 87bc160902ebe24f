"""Launching ranks: what the launching process does, and what a rank does.

asked for            start       the public functions; `timeouts`, `default_method`, `gpus`, `seeds`
started              starting    the steps of every launch: `setups`, `board`, `connecting`, `plan`
                     methods     how a process comes to life: fork, forkserver (`server`), spawn; `process`
                     quiet       the moment for a fork; `sqlite`, `threads`, `libraries`: what these have to be told
followed             supervisor  reads and shows what ranks send, into their `record`; `judging`, `describing`
                     context     waits; `changes`, `stopping`, `outcomes`, `interrupts`, `interrupted`
                     where       where ranks are and what they wait for; `left`: whose that was, of ranks that ended
over                 exiting     the launching process ends; `registry`, `unjoined`, `last`
in a rank            rank        its life; `ending`, `raising`, `relief`, `onimport`, `onuse`, `tracker`
                     written     what it writes to its standard streams
                     bars        its progress bars
between the two      channel     what is said; `messages`: as plain data
"""
