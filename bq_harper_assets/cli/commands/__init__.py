"""Each command of `bqh` has a module of its own, but for those of `bqh schema`."""
