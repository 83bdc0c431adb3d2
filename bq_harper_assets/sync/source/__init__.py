"""The pinned source is the table at one instant, with its rows as tasks read them."""
