"""A soak: for minutes or hours, at random, what programs do with nbmp and what happens to them.

    director      starts the subject, sees to it that each operation ends in time, kills what hangs, prints the report
    subject       one process that does one operation after another, as a program or a notebook would that runs for days
    ranks ...     what the operations start

    __main__      python -m tests.soak --minutes 30 --seed 1
    director      the watch over the subject          report     what is counted, and how it is printed
    subject       the loop, and what is checked after each operation
    dumping       where all processes are             chance     methods, sizes and moments at random
    work          what runs in ranks                  signals    interrupts and kills at random moments
    operations    launches, queues, pools, arrays, errors, interrupts, kills, launchers that are killed, kernels

Everything that is random comes from the seed and the number of the operation, `--first N --count 1` does one again
(what processes do meanwhile is up to the machine, of course).
"""
