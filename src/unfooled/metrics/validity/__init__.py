"""The judge of validity: how likely a reader accepts an altered text, its label kept, its language fluent."""
