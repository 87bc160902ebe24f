"""The table of ranks.

monitor     when it is shown, and that it moves
panel       it as a widget, with buttons
actions     what its buttons do
selecting   which of many ranks somebody means
render      a snapshot as HTML: whole, and in the parts of the widget
columns     the columns of the table
tiles       many ranks at a glance
stackview   stacks and errors of ranks as HTML
style       its look, on top of what all pictures have in common
formatting  a launch as the value of a cell
"""
