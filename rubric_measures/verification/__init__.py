"""Reports with which assessors check grades and banks."""
