"""Other libraries' measures, pipelines and models: one file per library, imported on use."""
