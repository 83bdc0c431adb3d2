"""The spot check compares rows that are picked at random in both stores."""
