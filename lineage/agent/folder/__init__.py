"""The working folder of a conversation (A2): confined reading, listing, searching, editing, and commands."""
