CREATE STREAM packets (ts TIMESTAMP, src INET) FROM 'spark:packets'
  WATERMARK ts DELAY '2 seconds';

CREATE QUERY q AS SELECT src, count(*) AS n FROM packets [RANGE '5 minutes'] GROUP BY src LIMIT DELAY TO '5 seconds';
