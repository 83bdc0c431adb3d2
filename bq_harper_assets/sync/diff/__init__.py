"""The diff compares rows of source and target cell by cell; it is written once for every use."""
