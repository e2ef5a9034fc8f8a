"""Pictures and pages for people: plain numbers in, figures and HTML out."""
