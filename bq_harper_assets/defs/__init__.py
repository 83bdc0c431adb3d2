"""Dagster's assets, checks, jobs and sensors are built from contracts."""
