CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';

CREATE TABLE hosts (host STRING, owner STRING, level INT) FROM 'csv:hosts.csv' WITH (refresh = '10 seconds');
CREATE QUERY q AS
  SELECT owner, count(*)
  FROM packets P [RANGE '5 minutes'] LEFT JOIN hosts H ON P.host = H.host
  GROUP BY owner;
