"""The view of shared memory.

monitor  when it is shown, and when it ends
panel    it as a widget, with buttons
render   it as HTML
cells    which cell made an array
"""
