CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';
CREATE STREAM alerts (ts TIMESTAMP, src INET, host STRING, level INT) FROM 'csv:alerts.csv';

CREATE QUERY q AS
  SELECT count(*)
  FROM packets P [WINDOW UNTIL NOW], alerts A [RANGE '90 seconds']
  WHERE P.src = A.src EVERY 1 MINUTE;
