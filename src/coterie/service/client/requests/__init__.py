"""What the service can be asked for, as data: one plan for each request, which both clients carry out."""
