"""The ACID store that coordinates: who may move what, what was moved, and what was refused."""
