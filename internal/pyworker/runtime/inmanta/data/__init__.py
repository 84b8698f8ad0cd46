"""Records of the server, as far as modules touch them."""
