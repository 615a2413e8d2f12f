CREATE STREAM "flows:owed" (ts TIMESTAMP, src INET) FROM 'csv:flows.csv';
CREATE QUERY q AS SELECT src, count(*) AS n FROM "flows:owed" [RANGE '5 minutes'] GROUP BY src;
