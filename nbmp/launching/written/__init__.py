"""What ranks write to their standard streams.

stdio     pipes of a rank's own, whole lines, no input          (rank)
loggers   logging and warnings of the launching process, for ranks that do not inherit them
lines     the bytes of a pipe, cut into whole lines
terminal  lines as a terminal shows them
kept      what a rank has written, in bounded memory
outputs   that of launches that are over: `nbmp.output`
"""
