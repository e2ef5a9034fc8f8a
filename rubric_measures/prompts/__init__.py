"""Prompt texts (TOML, with scale and citation); `parsers` reads their replies."""
