"""A cell's body on its way into ranks, and IPython there.

names   which cell a source file is, and where a magic's body stands in it
source  a body compiled for the ranks       (launching process)
body    a compiled body, run                (rank)
inrank  IPython in a rank                   (rank)
"""
