"""Progress bars of ranks, on the rank board.

slots     how a bar lies there
opened    which of a rank's bars stand there        (rank)
tqdms     tqdm's bars are bars there                (rank)
progress  how far a rank is                         (launching process)
"""
