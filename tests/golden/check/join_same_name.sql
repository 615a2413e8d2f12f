CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  SELECT count(*)
  FROM packets [RANGE '5 minutes'], packets [RANGE '5 minutes']
  WHERE packets.src = packets.dst;
