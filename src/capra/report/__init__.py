"""Records and their tables. Made from results that are given; runs nothing."""
