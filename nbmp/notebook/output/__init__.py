"""What ranks write and display, under the cell that launched them.

channel      the way to one cell, from any thread
sink         lines and displays, to where the launching code's output goes
celloutputs  those that go to a cell: as much as a browser can take
overflow     what is too much, counted, with its last lines
displays     captions and places of displays
results      what the ranks of a cell returned, shown richly
publisher    what a rank displays, on its way                   (rank)
"""
