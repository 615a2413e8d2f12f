CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';

CREATE TABLE t (low INET, high INET, name STRING) FROM 'csv:owners.csv' WITH (refresh = 'often');
CREATE QUERY q AS
  SELECT name, count(*)
  FROM packets P [RANGE '5 minutes'], t
  WHERE P.src >= t.low AND P.src < t.high GROUP BY name;
