"""What people run: executing chapters, training, atlas, report, teaching, publishing."""
