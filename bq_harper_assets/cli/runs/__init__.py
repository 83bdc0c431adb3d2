"""Commands start runs from a terminal over what is due, once the servers are known to answer."""
