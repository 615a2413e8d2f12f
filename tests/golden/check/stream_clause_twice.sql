CREATE STREAM r (ts TIMESTAMP) FROM 'csv:a' FROM 'csv:b';
