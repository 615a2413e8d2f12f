CREATE STREAM packets (
  ts TIMESTAMP, seen TIMESTAMP, src INET, dst INET, sport INT, proto TINYINT,
  bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  WITH a AS (SELECT src FROM packets [RANGE '5 minutes']) SELECT count(*) FROM a [RANGE '5 minutes'], packets [RANGE '5 minutes'];
