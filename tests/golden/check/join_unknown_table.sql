CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';
CREATE TABLE owners (low INET, high INET, name STRING) FROM 'csv:owners.csv';

CREATE QUERY q AS
  SELECT count(*)
  FROM packets P [RANGE '5 minutes'], owner O
  WHERE P.src = O.low;
