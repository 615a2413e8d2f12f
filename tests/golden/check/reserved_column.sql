CREATE STREAM r (ts TIMESTAMP, order INT) FROM 'csv:a';
CREATE QUERY q AS SELECT count(*) FROM r [RANGE '5 minutes'];
