"""Launching ranks: what the launching process does (`start`, `context`, `supervisor`) and what a rank does (`rank`)."""
