"""What English grammar says about an edit: forms, agreement, names, relations of words. No model and no file
of its own: taggers and lexicons come opened, from `resources`."""
