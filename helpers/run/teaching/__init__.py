"""Teaching with the book: copies for students, slides, a guide, grading. All of it is made from the chapters."""
