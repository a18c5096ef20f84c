"""The sample tree of `up --demo`: invented sessions of coding agents, a live document, and a run that plays while you watch."""
