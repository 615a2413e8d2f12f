CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';
CREATE TABLE owners (low INET, high INET, name STRING) FROM 'csv:owners.csv';

CREATE QUERY q AS
  SELECT O.low/24, count(*)
  FROM packets P [RANGE '5 minutes'], owners O
  WHERE P.src >= O.low AND P.src < O.high GROUP BY O.low/24;
