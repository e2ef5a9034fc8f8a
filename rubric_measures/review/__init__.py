"""The review page: assessors check grades and edit the test bank in a browser; nothing they do is lost."""
