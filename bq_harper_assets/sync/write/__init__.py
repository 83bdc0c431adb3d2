"""The tasks of one Spark job read rows and hand them to the target, which writes them."""
