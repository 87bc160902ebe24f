"""What is given away: wheel and sdist, and what Binder makes of this repository, each in a fresh environment."""
