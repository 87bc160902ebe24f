"""The magics: what a person writes on top of a cell or in a line.

mpspawn     `%%mpspawn` and `%mpspawn`, on top of what `nbmp.launch` does
background  a launch that its cell does not wait for
control     `%mpstack`, `%mpstatus`, `%mpstop`
mpshm       `%mpshm`
arguments   the options of `%%mpspawn`
parsing     the line of any magic, and what is said of a wrong one
naming      what launches are called in a notebook
completion  tab completion of the magics' lines
"""
