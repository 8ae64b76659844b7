"""What a run's log tells people: the shapes of the story, and how each event is told. `runs.timeline` folds them together."""
