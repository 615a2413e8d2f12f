CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';
CREATE STREAM alerts (ts TIMESTAMP, src INET, host STRING, level INT) FROM 'csv:alerts.csv';
CREATE TABLE owners (low INET, high INET, name STRING) FROM 'csv:owners.csv';

CREATE QUERY q AS
  SELECT count(*)
  FROM packets P [RANGE '5 minutes'] JOIN alerts A [RANGE '5 minutes'] ON P.src = A.src
  LEFT JOIN owners O ON O.low = P.src AND P.bytes > A.level;
