"""Each table is an asset with its partitions' materialisations, its schedule, sensor and jobs."""
