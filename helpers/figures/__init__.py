"""Pictures that two or more chapters draw."""
