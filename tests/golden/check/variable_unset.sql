CREATE STREAM r (ts TIMESTAMP)
  FROM 'csv:${input}';
