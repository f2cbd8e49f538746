// Placeholder until the folder has a source.
