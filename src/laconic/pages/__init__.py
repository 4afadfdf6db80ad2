"""Pages: what an experiment file, or all files of a paper, leave to be read: a report with its figures and files."""
