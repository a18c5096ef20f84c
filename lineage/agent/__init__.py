"""Running agents: requests to a model, turns, tools, approvals (A1–A6)."""
