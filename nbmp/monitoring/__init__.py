"""What the ranks of a launch are doing, as plain data. No user interface: anyone can print or draw a
snapshot."""

from nbmp.monitoring.snapshots import LaunchSnapshot, RankSnapshot, Sampler, text_table

__all__ = ["LaunchSnapshot", "RankSnapshot", "Sampler", "text_table"]
