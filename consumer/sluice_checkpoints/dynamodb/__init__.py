"""DynamoDB behind the ports: Sluice's table, tables of other systems, and how a table is created.

The one room in which boto3 meets a table.
It decides nothing: conditions come from `protocol`, `migrate` and `export`.
"""
