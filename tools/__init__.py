"""What makes the documentation: notebooks without Jupyter, and a look at the built site."""
