"""Actions on accounts (R1): everything that writes who may sign in."""
