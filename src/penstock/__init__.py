"""penstock: many continuous aggregate queries on one fast stream, in one Spark streaming query."""
