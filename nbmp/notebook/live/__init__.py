"""Pictures that move under a cell, whatever they are of.

pictures    how one gets under its cell, changes there, and stays when it ends; one thread for all
clicks      buttons, and how clicks arrive while a cell runs
polling     clicks on ipykernel 6, taken while the main thread waits for ranks
subshells   clicks on ipykernel 7.4 from front ends that know no subshells
unattended  notebooks that a program runs: pictures brought up to date at each cell
style       the look that all pictures have in common
ansi        colours of a terminal as HTML
"""
