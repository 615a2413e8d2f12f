CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';
CREATE STREAM alerts (ts TIMESTAMP, src INET, host STRING, level INT) FROM 'csv:alerts.csv';

CREATE QUERY q AS
  SELECT count(*)
  FROM packets P [RANGE '5 minutes'], alerts "a.b" [RANGE '5 minutes']
  WHERE P.src = "a.b".src;
