CREATE STREAM r (ts TIMESTAMP) FROM 'csv:a' WITH (a = 1, a = 2);
