"""What makes the documentation: notebooks as pages, and a look at the built site."""
