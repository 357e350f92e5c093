"""Make collections: rewrites by a language model, and what is known of them."""
