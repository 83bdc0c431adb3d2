"""The sample data is vessels that sail between real ports, their port calls and their register."""
