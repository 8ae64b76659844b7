"""Two runs beside each other: the rows of one, the words that differ, both in figures. `runs.comparing` puts them together."""
