CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';
CREATE TABLE hosts (host STRING, owner STRING, level INT) FROM 'csv:hosts.csv';

CREATE QUERY q AS
  SELECT count(*) FROM packets P [RANGE '5 minutes']
  WHERE EXISTS (SELECT 1 FROM hosts H WHERE H.host = P.host AND H.level <> P.sport);
