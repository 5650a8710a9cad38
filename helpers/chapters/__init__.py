"""What each chapter measures, draws, asks and finds: one folder a chapter; none imports another."""
