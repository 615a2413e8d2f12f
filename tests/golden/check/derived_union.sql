CREATE STREAM packets (
  ts TIMESTAMP, seen TIMESTAMP, src INET, dst INET, sport INT, proto TINYINT,
  bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  SELECT count(*) FROM (SELECT src FROM packets [RANGE '5 minutes'] UNION SELECT dst FROM packets [RANGE '5 minutes']) AS a [RANGE '5 minutes'];
