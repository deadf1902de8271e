"""From a traced graph to kernels and a plan; nothing here knows of a target machine but the code generators."""
