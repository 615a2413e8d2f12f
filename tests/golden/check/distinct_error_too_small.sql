CREATE STREAM packets (
  ts TIMESTAMP, seen TIMESTAMP, src INET, dst INET, sport INT, proto TINYINT,
  bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  SELECT approx_count_distinct(src, 0.0001) FROM packets [RANGE '5 minutes'];
