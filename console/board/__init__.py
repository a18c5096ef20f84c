"""The board (R9): rows derived from what was committed, for the dashboard and for root pages. Written by its keeper alone."""
