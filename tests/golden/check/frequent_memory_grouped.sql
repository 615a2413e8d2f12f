CREATE STREAM packets (
  ts TIMESTAMP, seen TIMESTAMP, src INET, dst INET, sport INT, proto TINYINT,
  bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  SELECT sport, approx_frequent(src, 0.01, '64KiB') AS f FROM packets [RANGE '5 minutes'] GROUP BY sport;
