"""Image encoders as people use them: what the numbers depend on, and how fast they come."""
