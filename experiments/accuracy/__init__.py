"""Studies of accuracy and coverage; each rewrites its table in docs/."""
