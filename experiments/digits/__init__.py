"""Real generative models of real images: the 1,797 handwritten digits inside scikit-learn."""
