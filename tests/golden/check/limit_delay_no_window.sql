CREATE QUERY q AS SELECT "host", count(*) AS n FROM 'trace.parquet' GROUP BY "host" LIMIT DELAY TO '5 seconds';
