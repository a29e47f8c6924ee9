"""Which part of each paper is where: statements, algorithms, tables, figures."""
