"""Reports with which people check grades and banks."""
