CREATE STREAM packets (
  ts TIMESTAMP, seen TIMESTAMP, src INET, dst INET, sport INT, proto TINYINT,
  bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';

CREATE QUERY q AS
  SELECT net/8, sum(n) FROM p EVERY 5 MINUTES GROUP BY net/8;
CREATE QUERY p AS SELECT src/24 AS net, count(*) AS n FROM packets EVERY 1 MINUTE GROUP BY net;
