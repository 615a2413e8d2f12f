CREATE STREAM r (ts TIMESTAMP, a INT
  FROM 'csv:a.csv';
