"""A whole tree as one file, out and in again (C5). It stands above the apps: everything that belongs to a root passes here."""
