"""Where is it? Stacks of ranks at this moment, and which ranks wait for what.

launching process                              rank
  asking     a signal for each thread    ──>     answering   writes its stacks
                                                   into the memory file of `stackfile`, where crashes go as well
  stacks     what was read, as plain data  <──
  waits      what a stack waits for
  watching   since when, from repeated looks
"""
