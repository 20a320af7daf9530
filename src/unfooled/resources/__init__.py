"""Word vectors, lexicons, encoders, taggers and data sets: the only room that reads or downloads them."""
