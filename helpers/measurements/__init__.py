"""What two or more places measure: a function of one text's maps, and what is made of its answers."""
