"""Values of the model as Python code sees them."""
