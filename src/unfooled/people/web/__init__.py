"""Pages that people use: the study of an annotator, and the playground."""
