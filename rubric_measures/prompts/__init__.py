"""Prompt texts (TOML, with scale and citation) and the parsers of their replies."""
