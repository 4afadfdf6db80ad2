"""Papers: an experiment file a figure, what each claims, and how that is judged on the results."""
