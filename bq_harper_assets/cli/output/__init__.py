"""Commands print their results in words and figures that fit a terminal."""
