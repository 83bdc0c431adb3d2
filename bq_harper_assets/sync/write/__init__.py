"""Rows become records of requests and are written into Harper by the tasks of one Spark job."""
