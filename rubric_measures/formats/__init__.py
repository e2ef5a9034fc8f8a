"""Foreign file formats, one module each; foreign field names stop here."""
