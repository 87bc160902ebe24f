"""The notebook edge: a cell in N ranks, their output under it, a table of them while they run.

    extension  what `%load_ext nbmp` does
    frontend   what the core asks of the place that launches
    leaving    IPython in a terminal ends while ranks run
    magics     what a person writes: `%%mpspawn`, `%mpstack`, ...
    cells      a cell's body on its way into ranks, and IPython there
    output     what ranks write and display, under their cell
    live       pictures that move under a cell: updates, clicks, look
    ranks      the table of ranks
    memory     the view of shared memory

Nothing here is imported by the core but by text. `cells.body` imports without IPython; `live` does without ipywidgets
where there is none.
"""
