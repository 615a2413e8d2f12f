CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  WITH L AS (SELECT src, count(*) AS n FROM packets [RANGE '1 minute'] GROUP BY src)
  SELECT count(*) FROM packets P [RANGE '5 minutes'], L [ROWS 100]
  WHERE P.src = L.src EVERY 1 MINUTE;
