CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';
CREATE TABLE hosts (host STRING, owner STRING, level INT) FROM 'csv:hosts.csv';

CREATE QUERY q AS
  SELECT count(*) FROM hosts H WHERE EXISTS (SELECT 1 FROM packets P [RANGE '5 minutes'] WHERE P.host = H.host);
