"""Studies with people: protocols, sampling, the study file, and what the answers say."""
