"""A turn takes the cells of one table through its steps, judges what came of them and reports."""
