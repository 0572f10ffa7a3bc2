"""How wrong a completion may be: error estimates, and bounds that are honest at every look."""
