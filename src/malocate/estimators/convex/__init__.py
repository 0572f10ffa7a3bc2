"""The convex problems, solved to a certified gap, and a penalty that needs no noise level."""
