"""Turning an uploaded file into text, in a child process with limits; a failure is a status (D22)."""
