"""The notebook edge: a cell in N ranks, their output under it, a table of them while they run.

    extension   what `%load_ext nbmp` does
    magics      `%%mpspawn` and `%mpspawn`, on top of what `nbmp.launch` does
    background  a launch that its cell does not wait for
    leaving     IPython in a terminal ends while ranks run
    unattended  notebooks that a program runs: pictures brought up to date at each cell
    control     `%mpstack`, `%mpstatus`, `%mpstop`
    memory_...  shared memory: `%mpshm`, the picture, its HTML, and which cell made an array
    arguments   the options of `%%mpspawn`
    parsing     the line of any magic, and what is said of a wrong one
    naming      what launches are called in a notebook
    completion  tab completion of the magics' lines
    cells       which cell a source file is, and where a magic's body stands in it
    source      a cell's body compiled for the ranks          (launching process)
    body        a compiled body, run                          (rank)
    inrank      IPython in a rank                             (rank)
    publisher   what a rank displays, on its way              (rank)
    frontend    what the core asks of the place that launches
    output      lines and displays of ranks, to where the launching code's output goes
    celloutputs those that go to a cell: as much as a browser can take
    overflow    what is too much, counted, with its last lines
    displays    captions and places of displays
    results     what the ranks of a cell returned, shown richly
    channel     the way to one cell, from any thread
    monitor     the table of ranks, kept up to date by one thread
    panel       it as a widget, with buttons
    actions     what its buttons do
    clicks      buttons, and how clicks arrive while a cell runs
    polling     clicks on ipykernel 6, taken while the main thread waits for ranks
    subshells   clicks on ipykernel 7.4 from front ends that know no subshells
    selecting   which of many ranks somebody means
    formatting  a launch as the value of a cell
    live        outputs that move
    render      a snapshot as HTML: whole, and in the parts of the widget
    columns     the columns of its table
    tiles       many ranks at a glance
    stackview   stacks and errors of ranks as HTML
    ansi        colours of a terminal as HTML
    rank_style  the look of the table of ranks
    style       the look that all pictures have in common

Nothing here is imported by the core but by text; `body` imports without IPython, `monitor` lives without
ipywidgets."""
