"""The sample data: vessels that move between real ports, their port calls and their register."""
