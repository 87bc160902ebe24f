"""Shared memory as plain data.

segments      what each process has mapped and open
usage         segments and limits: `nbmp.memory_usage`
named_arrays  what variables call the arrays of this process
holders       who a process is, as a person calls it
view          the same as `usage` by the names of variables and of ranks
rows          segments as the rows that a person reads
remarks       what a person should know before something fails
text          all of it in words
"""
