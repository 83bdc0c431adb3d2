"""The steps run in the order of their numbers. What a released step does is never edited."""
