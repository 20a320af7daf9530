"""Is a defended model's gain real? Adaptive attacks, a look at the model itself, and a verdict in words."""
